"""MuJoCo, with every text of a model compiled once in a process: drawing dm_control's sky is most of making a task."""

import copy
import functools

import mujoco


def install():
    """Every caller still gets a model of its own, and what was compiled last is still what can be saved."""
    compile_text, compile_file = mujoco.MjModel.from_xml_string, mujoco.MjModel.from_xml_path
    save = mujoco.mj_saveLastXML
    last = []  # the text that was asked for last, if no file was since then

    @functools.lru_cache(maxsize=50)
    def compiled(xml, assets):
        return compile_text(xml, dict(assets))

    def from_xml_string(xml, assets=None):
        last[:] = [(xml, assets or {})]
        return copy.copy(compiled(xml, frozenset((assets or {}).items())))

    def from_xml_path(*arguments, **named):
        last.clear()
        return compile_file(*arguments, **named)

    def save_last(path, model):
        for text in last:
            compile_text(*text)
        save(path, model)

    mujoco.MjModel.from_xml_string = staticmethod(from_xml_string)
    mujoco.MjModel.from_xml_path = staticmethod(from_xml_path)
    mujoco.mj_saveLastXML = save_last
