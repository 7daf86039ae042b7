"""A server of tools over stdin and stdout for the tests: the protocol by hand, on Python's standard library alone.

Its arguments say how it behaves: `silent` never answers, `dead` ends at once, `rubbish` writes what is no message,
`grown` has one tool more from the start. Each call is noted in the file that the variable CALLS names.
"""

import json
import os
import sys
import time

WAYS = set(sys.argv[1:])
READ_ONLY = {"readOnlyHint": True}
COLOURS = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"]}
TOOLS = [
    {"name": "Paint", "description": "Paint it.", "inputSchema": COLOURS, "annotations": {"destructiveHint": False}},
    {"name": "look", "description": "Look at the wall.", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
    {"name": "break", "description": "Break the wall.", "inputSchema": {"type": "object"}},
    {"name": "grow", "description": "Get a new tool.", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
    {"name": "hang", "description": "Never answer.", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
    {"name": "die", "description": "End.", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
    {"name": "fail", "description": "Fail.", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
]
NEW = {"name": "sing", "description": "Sing.", "inputSchema": {"type": "object"}, "annotations": READ_ONLY}
wall = "white"


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(said: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": said}], **more}


def call(name: str, arguments: dict[str, str]) -> dict[str, object] | None:
    global wall
    if "CALLS" in os.environ:
        with open(os.environ["CALLS"], "a") as file:
            file.write(f"{name} {json.dumps(arguments)}\n")
    if name == "Paint":
        wall = arguments["colour"]
        return text(f"painted \x1b[31m{wall}")
    if name == "look":
        return text(json.dumps({"wall": wall}, indent=2), structuredContent={"wall": wall})
    if name == "grow" and NEW not in TOOLS:
        TOOLS.append(NEW)
        send(method="notifications/tools/list_changed")
    if name == "hang":
        return None
    if name == "die":
        print("the wall fell on me", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "fail":
        return text("the bucket is empty", isError=True)
    return text(f"{name} is done")


def main() -> None:
    if "dead" in WAYS:
        sys.exit("no wall here")
    if "rubbish" in WAYS:
        print("Listening on port 3000", flush=True)
    if "grown" in WAYS:
        TOOLS.append(NEW)
    for line in sys.stdin:
        asked = json.loads(line)
        if "silent" in WAYS:
            time.sleep(60)
        number, parameters = asked.get("id"), asked.get("params") or {}
        if asked["method"] == "initialize":
            info = {"name": "Wall Server", "version": "1.0 (beta)"}
            capabilities = {"tools": {"listChanged": True}}
            version = parameters["protocolVersion"]
            send(id=number, result={"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        elif asked["method"] == "tools/list":
            half = len(TOOLS) // 2  # in two pages
            first = parameters.get("cursor") is None
            page = {"tools": TOOLS[:half], "nextCursor": "2"} if first else {"tools": TOOLS[half:]}
            send(id=number, result=page)
        elif asked["method"] == "tools/call":
            result = call(parameters["name"], parameters.get("arguments") or {})
            if result is not None:
                send(id=number, result=result)
        elif number is not None:
            send(id=number, error={"code": -32601, "message": f"no method {asked['method']}"})


if __name__ == "__main__":
    main()
