"""Show the page of `to_html` as a widget in notebooks: the explorer."""

from __future__ import annotations

from typing import Any

from .._core import Plan
from ..profiling import Profile
from .build import picture_of
from .model import Picture
from .page import data_of, part

__all__ = ["explore"]


def explore(what: Any, profile: Profile | None = None, *, height: str = "600px") -> Any:
    """Show a graph, a plan or a profile in a notebook: the graph, the timeline of calls, source lines, search.

    Parameters
    ----------
    what : Graph, Plan, Value or Profile
        Of a profile: the plan that took most of its time.
    profile : Profile, optional
        Adds the time that each box took, and the timeline.
    height : str, optional
        Of the widget, in CSS.

    Returns
    -------
    anywidget.AnyWidget

    Raises
    ------
    ValueError
        The plan of the profile is no more.
    ImportError
        anywidget, of the extra ``notebook``, is not installed.

    See Also
    --------
    Graph.to_html : the same as a file.

    Examples
    --------
    >>> import pyop
    >>> plan = pyop.trace(lambda x: x + 1.0, "float64[n]").compile()
    >>> pyop.explore(plan)  # doctest: +SKIP
    """
    if isinstance(what, Profile):
        profile, what = what, _plan_of(what)
    picture = Picture("no plan was called") if what is None else picture_of(what, profile)
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            'pyop.explore needs anywidget: pip install "pyop-core[notebook]"; to_html(path) does not'
        ) from error
    explorer = type(
        "Explorer",
        (anywidget.AnyWidget,),
        {
            "_esm": part("page.js"),
            "_css": part("page.css"),
            "data": traitlets.Dict().tag(sync=True),
            "height": traitlets.Unicode().tag(sync=True),
        },
    )
    return explorer(data=data_of(picture, profile), height=height)


def _plan_of(profile: Profile) -> Plan | None:
    """Return the plan with most total time; None if none was called."""
    plans = [(row.total_ns, k) for k, row in enumerate(profile.rows) if row.kind == "plan"]
    if not plans:
        return None
    reference = profile._sources[max(plans)[1]].plan
    plan = reference() if reference is not None else None
    if plan is None:
        raise ValueError(
            "the plan that took most of the time no longer exists: keep it, and call pyop.explore(plan, profile)"
        )
    return plan
