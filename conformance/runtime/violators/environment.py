"""Environment variables that are misread, read late, or ignored (runtime spec, Appendix C; AMB-RT-46)."""

from dataclasses import replace

from tessera_conformance.strength import Around
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.runtime.contexts import read_environment
from tessera_reference.runtime.state import Line

from .changes import afterwards, answering, broken, result

READ = "runtime.calls.read_environment"


def reading(clause, name, description, change):
    """Return a violation that changes the environment that a context has read."""
    return broken(clause, name, description, READ, result(change))


def finding(clause, name, description, change):
    """Return a violation that changes the variables before they are read."""
    return broken(clause, name, description, READ, Around(lambda usual: lambda variables: usual(change(variables))))


def without(name):
    """Return a change that removes a variable."""
    return lambda variables: {key: value for key, value in variables.items() if key != name}


def instead(name, values):
    """Return a change that replaces values of a variable."""
    return lambda variables: {
        key: values.get(value, value) if key == name else value for key, value in variables.items()}  # fmt: skip


VARIABLES = {
    "TESS_NUMERICS": ("RT-19.C-01", {"exact": "strict"}),
    "TESS_AUTOTUNE": ("RT-19.C-04", {"2": "1"}),
    "TESS_LOG_LEVEL": ("RT-19.C-05", {"everything": "trace"}),
}
"""For each variable its clause, and a value that is unknown for one that is known."""


def chosen(name, description, change):
    """Return a violation that changes the policy that a context gets from the environment."""
    default = Around(lambda usual: lambda self: change(self, usual(self)))
    return broken("RT-19.C-01", name, description, "runtime.contexts.Context.default", default)


def not_kept(adapter, call, given):
    for _, context in adapter.runtime.handles.live("context"):
        context.environment = read_environment(given["variables"])


def last_store(usual):
    directories = {}

    def store(self, context):
        found = usual(self, context) or directories.get(id(self))
        directories[id(self)] = found
        return found

    return store


def governing(name, description, govern):
    """Return a violation with another order of precedence of policy sources."""
    return broken("RT-19.C-02", name, description, "runtime.contexts.Context.governing", govern)


def _with(policy, flag):
    return replace(policy, deterministic=1) if flag else policy


def environment_over_modules(self, module=None, flag=False):
    chosen = self.environment.deterministic
    return _with(self.policy or (self.default() if chosen is not None else module) or self.default(), flag)


def merged(self, module=None, flag=False):
    sources = [policy for policy in (self.policy, module) if policy is not None]
    deterministic = any(source.deterministic for source in sources) or bool(self.environment.deterministic)
    return replace((sources or [self.default()])[0], deterministic=int(deterministic or flag))


def tuned(value):
    return lambda found: found if found.autotune is None else replace(found, autotune=value)


VIOLATORS = [
    *(finding(clause, f"no_{name}", f"does not read {name}", without(name))
        for name, (clause, _) in VARIABLES.items()),
    *(finding(clause, f"any_{name}", f"takes an unknown value of {name} for a known one", instead(name, unknown))
        for name, (clause, unknown) in VARIABLES.items()),
    finding("RT-19.C-05", "other_TESS_LOG_LEVEL", "takes a value of TESS_LOG_LEVEL for another",
            instead("TESS_LOG_LEVEL", {"trace": "debug"})),
    finding("RT-19.C-02", "no_TESS_DETERMINISTIC", "does not read TESS_DETERMINISTIC",
        lambda variables: {**without("TESS_DETERMINISTIC")(variables), "TESS_DETERMINISTIC": "0"}),
    chosen("numerics_told_alone", "tells TESS_NUMERICS and changes no policy by it",
        lambda self, usual: replace(NumericsPolicy(), deterministic=usual.deterministic)),
    chosen("fast_beside_determinism", "lets TESS_DETERMINISTIC take fast math away", lambda self, usual: replace(
        usual, allowFastMath=usual.allowFastMath if self.environment.deterministic is None else 0)),
    governing("module_first", "lets a module's policy win over the context's",
        lambda self, module=None, flag=False: _with(module or self.policy or self.default(), flag)),
    governing("environment_over_modules", "lets the environment win over modules", environment_over_modules),
    governing("flag_last", "lets the context's policy win over the flag",
        lambda self, module=None, flag=False: self.policy or _with(module or self.default(), flag)),
    governing("merged", "is deterministic where any source asks for it", merged),
    broken("RT-19.C-03", "never_stored", "writes nothing to the directory", "runtime.launches.CodeCache.store",
        lambda self, context: None),
    broken("RT-19.C-03", "last_store", "goes on with a directory that is unset", "runtime.launches.CodeCache.store",
        Around(last_store)),
    answering("RT-19.C-01", "NotKept", "tells what the environment says now", "tessxSetEnvironment",
        afterwards(not_kept)),
    broken("RT-19.C-05", "all_levels", "logs everything always", "runtime.state.Log.note",
        lambda self, level, text: self.lines.append(Line(level, text))),
    reading("RT-19.C-04", "always_tuned", "tunes although it is told not to", tuned(True)),
    reading("RT-19.C-04", "never_tuned", "does not tune although it is told to", tuned(False)),
]  # fmt: skip
