"""What the everyday tools do: each says in a sentence what it was asked for. Nothing outside is touched."""

from __future__ import annotations


def get_weather(city: str, unit: str = "celsius") -> str:
    """Say of which city the forecast is."""
    return f"the forecast of {city}, in {unit}"


def set_alarm(time: str, label: str = "") -> str:
    """Say when the alarm rings."""
    return f"an alarm at {time}{_named(label)}"


def set_timer(minutes: int, label: str = "") -> str:
    """Say how long the timer runs."""
    return f"a timer of {minutes} minutes{_named(label)}"


def send_email(to: str, body: str, subject: str = "") -> str:
    """Say to whom the mail goes."""
    return f"a mail to {to}{_named(subject)}: {body}"


def create_note(text: str, title: str = "") -> str:
    """Say what is noted."""
    return f"a note{_named(title)}: {text}"


def convert_currency(amount: float, from_currency: str, to_currency: str) -> str:
    """Say what is converted."""
    return f"{amount} {from_currency} in {to_currency}"


def play_music(query: str, shuffle: bool = False) -> str:
    """Say what is played."""
    return f"music: {query}{', in random order' if shuffle else ''}"


def search_web(query: str, limit: int = 10) -> str:
    """Say what is looked for."""
    return f"the first {limit} results for {query}"


def book_table(restaurant: str, people: int, date: str, time: str) -> str:
    """Say where and when."""
    return f"a table for {people} at {restaurant} on {date} at {time}"


def translate(text: str, language: str) -> str:
    """Say into which language."""
    return f"{text!r} in {language}"


def _named(label: str) -> str:
    return f" ({label})" if label else ""
