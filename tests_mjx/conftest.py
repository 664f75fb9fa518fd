"""Brax imports JAXopt, which warns that nobody maintains it any more; here warnings are errors."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import jaxopt as jaxopt
