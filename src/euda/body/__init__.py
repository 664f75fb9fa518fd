"""From a MuJoCo model to an observation whose every entry knows how it turns."""
