"""Short everyday requests to tool lists as people have them, with those that mean no tool: development cases.

The leaderboard's requests are long and say everything; these are how one speaks to a house or to a file server. None is
a request of `eval tools`, and nothing is measured on them.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def _tool(name: str, about: str, /, needed: str = "", **fields: Any) -> Row:
    """Return a function as the leaderboard lists it; of a field stands what it is for, its type or its values."""
    properties = {
        key: {"enum": told} if isinstance(told, list) else {"type": told[0], "description": told[1]}
        for key, told in fields.items()
    }
    parameters = {"type": "object", "properties": properties, "required": needed.split()}
    return {"name": name, "description": about, "parameters": parameters}


def _text(about: str = "") -> tuple[str, str]:
    return "string", about


def _number(about: str = "") -> tuple[str, str]:
    return "number", about


FILES = [
    _tool(
        "read_text_file",
        "Read the complete contents of a file as text. Handles several encodings and tells what went wrong where the "
        "file cannot be read. Only works within allowed directories.",
        "path",
        path=_text(),
        head=_number("Only the first lines"),
        tail=_number("Only the last lines"),
    ),
    _tool(
        "write_file",
        "Create a new file or completely overwrite an existing one with new content. Use with caution, as it "
        "overwrites without warning. Only works within allowed directories.",
        "path content",
        path=_text(),
        content=_text(),
    ),
    _tool(
        "list_directory",
        "Get a detailed listing of all files and directories in a path. Only works within allowed directories.",
        "path",
        path=_text(),
    ),
    _tool("create_directory", "Create a new directory, nested ones too.", "path", path=_text()),
    _tool(
        "move_file", "Move or rename files and directories.", "source destination", source=_text(), destination=_text()
    ),
    _tool(
        "search_files",
        "Recursively search for files that match a pattern.",
        "path pattern",
        path=_text(),
        pattern=_text(),
    ),
    _tool("delete_file", "Delete a file for ever.", "path", path=_text()),
]
ROOMS = ["kitchen", "bedroom", "bathroom", "hall"]
HOUSE = [
    _tool("turn_on_light", "Turn on the light of a room.", "room", room=ROOMS),
    _tool("turn_off_light", "Turn off the light of a room.", "room", room=ROOMS),
    _tool("set_thermostat", "Set the temperature of the heating.", "celsius", celsius=_number("Degrees")),
    _tool("lock_door", "Lock a door of the house.", "door", door=["front", "back"]),
    _tool("play_radio", "Play a radio station.", "station", station=_text("Name of the station")),
    _tool("open_blinds", "Open or close the blinds.", "state", state=["open", "closed"]),
    _tool("read_sensors", "Read temperature and humidity of the house."),
]
OFFICE = [
    _tool("create_event", "Add an event to the calendar.", "title start", title=_text(), start=_text("Date and time")),
    _tool("list_events", "List the events of a day.", "day", day=_text("A day such as Monday or 2027-03-01")),
    _tool("send_message", "Send a chat message to a colleague.", "to text", to=_text("Who gets it"), text=_text()),
    _tool("create_ticket", "Open a ticket for a bug or a wish.", "summary", summary=_text(), priority=["low", "high"]),
    _tool("search_wiki", "Search the pages of the wiki.", "query", query=_text()),
    _tool("start_call", "Start a video call.", "person", person=_text()),
]
SHOP = [
    _tool("find_product", "Search the shop for products.", "query", query=_text(), max_price=_number()),
    _tool("add_to_cart", "Put a product into the cart.", "product", product=_text(), count=_number()),
    _tool("track_order", "Say where an order is.", "order_id", order_id=_text("Such as A-1234")),
    _tool("cancel_order", "Cancel an order.", "order_id", order_id=_text("Such as A-1234")),
]
CAR = [
    _tool("navigate", "Show the way to a destination.", "destination", destination=_text()),
    _tool("set_temperature", "Set the air conditioning.", "degrees", degrees=_number()),
    _tool("play_song", "Play a song.", "title", title=_text(), artist=_text()),
    _tool("call_contact", "Phone somebody of the address book.", "name", name=_text()),
    _tool("charge_state", "Say how full the battery is."),
]
CLOCK = [
    _tool(
        "get_current_time",
        "Get the current time in a time zone.",
        "timezone",
        timezone=_text("IANA name, e.g. 'Europe/Oslo'"),
    ),
    _tool(
        "convert_time",
        "Convert a time between time zones.",
        "source_timezone time target_timezone",
        source_timezone=_text("IANA name"),
        time=_text("HH:MM"),
        target_timezone=_text("IANA name"),
    ),
]
ROBOT = [
    _tool(
        "move", "Drive the robot forward or back.", "direction metres", direction=["forward", "back"], metres=_number()
    ),
    _tool("rotate", "Turn the robot on the spot.", "degrees", degrees=_number()),
    _tool("grip", "Open or close the gripper.", "state", state=["open", "closed"]),
    _tool("dock", "Drive to the charging station."),
]
WEATHER = [_tool("get_forecast", "Get the weather forecast of a city.", "city", city=_text(), days=_number())]
TIMER = [_tool("start_timer", "Start a timer.", "minutes", minutes=_number("How long it runs"))]

WANTED: list[tuple[list[Row], dict[str, list[str]]]] = [
    (
        FILES,
        {
            "read_text_file": ["read todo.txt", "Read the file config.yaml", "the first 10 lines of the file log.txt"],
            "write_file": ["Write hi there to hello.txt", "create a file names.txt with the content Ann, Bob"],
            "list_directory": ["List the directory photos", "list all files in src", "list the files of /tmp/a"],
            "create_directory": ["create a directory called music", "make a new directory backup/2027"],
            "move_file": ["rename draft.md to final.md", "move a.png to the directory images"],
            "search_files": ["search for *.log files in var", "search the directory docs for pdf files"],
            "delete_file": ["delete old.txt", "delete the file report.doc please"],
        },
    ),
    (
        HOUSE,
        {
            "turn_on_light": ["light on in the hall", "turn on the bathroom light", "bedroom light on please"],
            "turn_off_light": ["turn the kitchen light off", "lights off in the bedroom"],
            "set_thermostat": ["set the heating to 19", "heating to 22 degrees", "thermostat 20"],
            "lock_door": ["lock the back door", "please lock the front door"],
            "play_radio": ["play Radio Paradise", "radio on, BBC 4"],
            "open_blinds": ["blinds open", "close the blinds"],
            "read_sensors": ["read the sensors", "what is the humidity?"],
        },
    ),
    (
        OFFICE,
        {
            "create_event": ["add lunch with Bo to the calendar, Tuesday 12:00", "new event: dentist, May 3rd at 9"],
            "list_events": ["list the events of Friday", "my calendar events on 2027-02-01"],
            "send_message": ["send Mia the message I am late", "message to Tom: build is green"],
            "create_ticket": ["open a ticket: login page is blank", "ticket with high priority, the printer burns"],
            "search_wiki": ["search the wiki for holidays", "look in the wiki for VPN setup"],
            "start_call": ["start a call with Ana", "video call with Peter"],
        },
    ),
    (
        SHOP,
        {
            "find_product": ["search for wool socks", "find products for cats under 20 dollars"],
            "add_to_cart": ["put two umbrellas into the cart", "add the blue mug to my cart"],
            "track_order": ["track order B-77", "where is my order A-9120?"],
            "cancel_order": ["cancel order A-31", "please cancel my order C-5"],
        },
    ),
    (
        CAR,
        {
            "navigate": ["navigate to Baker Street 5", "show me the way to the airport"],
            "set_temperature": ["temperature to 20", "set it to 23 degrees"],
            "play_song": ["play Hey Jude", "play the song Roxanne by The Police"],
            "call_contact": ["call Mum", "phone Dr. Lee"],
            "charge_state": ["how full is the battery?", "battery state"],
        },
    ),
    (
        CLOCK,
        {
            "get_current_time": ["what time is it in Asia/Tokyo?", "current time in Europe/Rome"],
            "convert_time": ["convert 15:30 from Europe/Oslo to America/Lima", "10:00 Asia/Seoul in Europe/Paris time"],
        },
    ),
    (
        ROBOT,
        {
            "move": ["forward 2 metres", "drive back 1 metre", "move forward 0.5"],
            "rotate": ["turn 90 degrees", "rotate by 45"],
            "grip": ["open the gripper", "close gripper"],
            "dock": ["go to the charging station", "dock"],
        },
    ),
    (WEATHER, {"get_forecast": ["weather in Bergen", "forecast for Lima please", "Paris weather for 3 days"]}),
    (TIMER, {"start_timer": ["timer 5 minutes", "start a timer for ten minutes", "10 minute timer"]}),
]
"""Requests that mean a tool."""

UNWANTED: list[tuple[list[Row], list[str]]] = [
    (FILES, ["what is the weather in Rome?", "send this to Bob", "how are you", "compile the project", "thanks a lot"]),
    (
        HOUSE,
        ["who wrote Hamlet?", "open the garage", "order a pizza", "I am bored", "water the plants", "feed the dog"],
    ),
    (OFFICE, ["book a flight to Oslo", "translate hello into German", "what is 7 times 8?", "good morning"]),
    (SHOP, ["tell me a story", "what is the capital of Peru", "turn on the light", "write a poem about cats"]),
    (CAR, ["who won the game yesterday?", "lock the house", "send an email to Jo", "open the trunk"]),
    (CLOCK, ["set an alarm", "what is the weather?", "who are you?", "play some music"]),
    (ROBOT, ["sing a song", "what is your name?", "make me a coffee", "paint the wall red"]),
    (WEATHER, ["set a timer for 5 minutes", "who is the mayor?", "hello", "buy a ticket to Paris"]),
    (TIMER, ["weather in Rome", "stop", "what is love?", "remind Ann to call"]),
]
"""Requests that mean none."""
