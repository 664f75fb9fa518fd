"""What every number of an observation is: fields, how they turn, and what they read.

A `Kind` says how an element of a field answers to a yaw, which is all that most of the package asks. A `Source` says
what the element reads from MuJoCo and how it answers to a mirror; readings know it, fields written by hand need not.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Literal

from euda.errors import LayoutError

Frame = Literal["world", "body"]


class Kind(enum.Enum):
    """How an element of a field answers to a yaw α about the vertical (gravity) axis.

    >>> from euda import Kind
    >>> Kind("vector") is Kind.VECTOR
    True
    >>> [(kind.value, kind.width) for kind in Kind]
    [('vector', 3), ('planar', 2), ('heading', 1), ('quaternion', 4), ('scalar', 1)]
    """

    VECTOR = "vector"  #: three world components (x, y, z): turned about z
    PLANAR = "planar"  #: two world components (x, y): turned in the plane
    HEADING = "heading"  #: an absolute yaw angle in rad, in [-π, π): α is added
    QUATERNION = "quaternion"  #: a world orientation (w, x, y, z) with w ≥ 0: multiplied on the left
    SCALAR = "scalar"  #: unchanged: heights, joint angles and rates, every reading in a body frame

    @property
    def width(self) -> int:
        """Numbers per element."""
        return _WIDTH[self]


_WIDTH = {Kind.VECTOR: 3, Kind.PLANAR: 2, Kind.HEADING: 1, Kind.QUATERNION: 4, Kind.SCALAR: 1}


class Rule(enum.Enum):
    """How an element answers to a symmetry (Q, S): Q acts on the world, S maps the robot onto itself.

    The object that an element reads goes to its image, and the element with it; the rule says what happens to its
    numbers. S_b is what S does in the frame of the object (for a sensor, in the sensor's own frame), det = ±1.
    """

    POLAR = "polar"  #: a world vector such as a velocity: Q v
    AXIAL = "axial"  #: a world vector such as an angular velocity: det(Q) Q v
    COLUMN = "column"  #: column `component` of the object's rotation matrix: R' = Q R S_bᵀ, so columns mix
    ORIENTATION = "orientation"  #: the quaternion of such a matrix, or entry `component` of it
    SCALAR = "scalar"  #: one number that keeps its value: a height, a touch, a joint angle up to its sign
    OWN_POLAR = "own-polar"  #: entry `component` of a vector in an own frame, such as a force: S_b v
    OWN_AXIAL = "own-axial"  #: entry `component` of a vector in an own frame, such as a gyroscope's: det(S_b) S_b v
    RELATIVE = "relative"  #: entry `component` (3 row + column) of M = R_frameᵀ R_object: M' = S_frame M S_bᵀ


@dataclasses.dataclass(frozen=True)
class Source:
    """What one element of a field reads, so that it can be found again in the mirrored robot.

    >>> import euda
    >>> source = euda.make("hopper3d_hop").layout.field("axis").sources[0]
    >>> source.object, source.id, source.rule.value, source.is_signed
    ('joint', 1, 'axial', True)
    """

    object: str
    """MuJoCo's word for what is read: `body` (a centre of mass), `xbody` (a body's frame), `joint`, `actuator`,
    `sensor`, `site`, `geom`; or `task` for the direction of travel."""
    id: int
    """MuJoCo's id of it; 0 for `task`."""
    rule: Rule
    component: int = 0
    """Which entry or column, where several elements make up one vector, matrix or quaternion."""
    is_signed: bool = False
    """Whether the sign with which the object (a joint, an actuator) goes to its image multiplies the numbers."""
    frame: tuple[str, int] | None = None
    """Object and id of the frame in which it is expressed, where that is neither the world's nor its own."""
    is_length: bool = False
    """Whether it is an angle or a length, which may shift on the way to its image, and not a rate or a force."""
    is_nonlinear: bool = False
    """Whether each number went through a function: then only a rule that permutes and flips numbers still holds."""


@dataclasses.dataclass(frozen=True)
class Field:
    """`count` elements of one kind under one name, for example the positions of seven limbs.

    A field that is read in a body frame and does not declare scalars is refused.

    >>> from euda import Field, Kind
    >>> Field("position", Kind.VECTOR, count=2, of=("thigh", "foot"), unit="m").dim
    6
    >>> Field("gyro", Kind.SCALAR, count=3, frame="body", unit="rad/s").dim
    3
    """

    name: str
    kind: Kind
    count: int = 1
    of: tuple[str, ...] = ()
    """What each element belongs to (limb, joint or sensor names); empty, or one name per element."""
    frame: Frame = "world"
    """The frame in which the numbers are expressed."""
    unit: str = ""
    sources: tuple[Source, ...] = dataclasses.field(default=(), compare=False, repr=False)
    """What each element reads; empty if that is not known. No part of what makes two fields equal, nor of JSON."""

    def __post_init__(self) -> None:
        if not self.name or any(c.isspace() for c in self.name):
            raise LayoutError(f"a field needs a name without spaces, not {self.name!r}")
        if not isinstance(self.kind, Kind):
            raise LayoutError(f"field {self.name!r}: unknown kind {self.kind!r}, valid are {kinds()}")
        if self.count < 1:
            raise LayoutError(f"field {self.name!r} needs a count of at least 1, not {self.count}")
        if self.of and len(self.of) != self.count:
            raise LayoutError(f"field {self.name!r} has {self.count} elements but {len(self.of)} names for them")
        if self.sources and len(self.sources) != self.count:
            raise LayoutError(f"field {self.name!r} has {self.count} elements but {len(self.sources)} sources for them")
        if self.frame not in ("world", "body"):
            raise LayoutError(f"field {self.name!r}: unknown frame {self.frame!r}, valid are 'world' and 'body'")
        if self.frame == "body" and self.kind is not Kind.SCALAR:
            raise LayoutError(
                f"field {self.name!r} is read in a body frame and declared {self.kind.name}: the body turns with the"
                f" world, so its numbers do not change; declare it SCALAR with count {self.count * self.kind.width}"
            )

    @property
    def dim(self) -> int:
        """How many numbers the field occupies."""
        return self.count * self.kind.width


def kinds() -> str:
    """The names of all kinds, for messages."""
    return ", ".join(kind.name for kind in Kind)
