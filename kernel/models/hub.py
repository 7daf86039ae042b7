"""`hf:OWNER/REPO/FILE.gguf`: files of a model hub, in the hub library's own cache. Knows no catalogue.

huggingface_hub is imported on the first use only. It resumes nothing, downloads to a name of its own and renames.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

from kernel.errors import ModelError, UnknownModelError
from kernel.models import fetch
from kernel.models.fetch import Progress

PREFIX = "hf:"
_NAME = re.compile(r"hf:([\w.-]+/[\w.-]+)/((?:[\w.-]+/)*[\w.-]+\.gguf)", re.IGNORECASE)
_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def parse(name: str) -> tuple[str, str]:
    """Return repository and file of a `hf:` name.

    >>> parse("hf:LiquidAI/LFM2.5-350M-GGUF/LFM2.5-350M-Q4_K_M.gguf")
    ('LiquidAI/LFM2.5-350M-GGUF', 'LFM2.5-350M-Q4_K_M.gguf')
    """
    found = _NAME.fullmatch(name)
    if not found or any(part in (".", "..") for part in name.split("/")):
        raise UnknownModelError(f"{name!r} does not read hf:OWNER/REPO/FILE.gguf")
    if _SPLIT.search(name):
        raise UnknownModelError(
            f"{name!r} is one part of a split model; join the parts (gguf-split --merge) and give the path"
        )
    return found[1], found[2]


def cached(name: str) -> Path | None:
    """Return the file if an earlier pull, of this or of another program, left it in the hub's cache; asks nobody."""
    repo, filename = parse(name)
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repo, filename)
    return Path(found) if isinstance(found, str) else None


def listed() -> list[tuple[str, Path]]:
    """Return name and path of every GGUF file in the hub's cache, by name."""
    from huggingface_hub import constants

    found = {}
    for path in Path(constants.HF_HUB_CACHE).glob("models--*--*/snapshots/*/**/*.gguf"):
        repo, _, _, *inside = path.relative_to(constants.HF_HUB_CACHE).parts
        _, owner, name = repo.split("--", 2)
        found[f"{PREFIX}{owner}/{name}/{'/'.join(inside)}"] = path
    return sorted(found.items())


def pull(name: str, progress: Progress | None = None) -> Path:
    """Fetch the file from the hub that `HF_ENDPOINT` names, verify its sha256, and return where it lies.

    Raises:
        ModelError: out of reach, no such repository or file, gated, no space, broken off, or not what the hub promised.
    """
    repo, filename = parse(name)
    endpoint = os.environ.get("HF_ENDPOINT") or None
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url

    try:
        # Asked for first and by itself: it fails at once where the download would try for half a minute.
        promised = get_hf_file_metadata(hf_hub_url(repo, filename, endpoint=endpoint), endpoint=endpoint)
        if promised.size and not cached(name):
            fetch.need_space(Path(constants.HF_HUB_CACHE), promised.size)
        path = Path(hf_hub_download(repo, filename, endpoint=endpoint, tqdm_class=_bar(progress, promised.size)))
    except ModelError:
        raise
    except Exception as error:  # the hub library lets the errors of its HTTP client through, whatever that is
        raise ModelError(f"{name}: {_cause(error, repo, filename)}") from error
    if _SHA256.fullmatch(sha256 := promised.etag or "") and (found := fetch.sha256_of(path)) != sha256:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise ModelError(f"{name}: has sha256 {found!r}, the hub promised {sha256!r}; nothing was kept, try again")
    return path


def _cause(error: Exception, repo: str, filename: str) -> str:
    """Return one sentence for what the hub library raised."""
    from huggingface_hub import errors

    match error:
        case errors.GatedRepoError():
            return "its owner asks for a yes to the terms; give it on the hub, then run: hf auth login"
        case errors.RepositoryNotFoundError():
            return f"the hub shows no repository {repo!r}"
        case errors.RemoteEntryNotFoundError():
            return f"{repo!r} has no file {filename!r}"
        case errors.HfHubHTTPError():
            return f"the hub answered {error.response.status_code}; try again later"
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return "no space left on the disk; nothing was kept"
    first = str(error).partition("\n")[0]
    if re.search(r"Consistency check|incomplete|without sending complete|timed out|ReadTimeout", str(error)):
        return f"the download broke off; nothing of it was kept, try again ({first})"
    return f"the hub cannot be reached; check connection, proxy and HF_ENDPOINT ({type(error).__name__}: {first})"


def _bar(progress: Progress | None, size: int | None) -> type[Any]:
    """Return a progress bar class that shows nothing itself and tells `progress`."""
    from huggingface_hub.utils.tqdm import tqdm

    class Bar(tqdm):
        done = 0

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            self.done += int(n or 0)
            if progress:
                progress("downloading", self.done, size)
            return None

    return Bar
