"""Pictures as the page wants them."""

from __future__ import annotations

import base64
import io

from PIL import Image

from skillstack.rollout.replay import Picture


def data_uri(picture: Picture) -> str:
    """A picture as a PNG in an address of its own. Quick rather than small: it is made thirty times a second."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
