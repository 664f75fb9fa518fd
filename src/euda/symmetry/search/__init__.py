"""MjModel → which parts of a robot are images of which: poses, candidates, matching."""
