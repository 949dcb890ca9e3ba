//! Settings of scripts: whether flows may run them, as which user, and their limits.

use clap::Args;
use windlass_runtime::calls::script::{ScriptLimits, ScriptUser};
use windlass_runtime::{ScriptPolicy, Settings};

use super::settings::{SettingReader, number, truth};

/// Settings of scripts, as text.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ScriptArgs {
    /// Let flows run scripts on this machine.
    #[arg(long, value_name = "BOOL", env = "WINDLASS_ALLOW_SCRIPTS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    allow_scripts: Option<String>,
    /// The user that scripts run as, by name or as UID:GID, if the server is root [default: the server's own].
    #[arg(long, value_name = "USER", env = "WINDLASS_SCRIPT_USER")]
    script_user: Option<String>,
    /// Parallel scripts at most; more scripts wait [default: 32].
    #[arg(long, value_name = "N", env = "WINDLASS_SCRIPTS_MAX")]
    scripts_max: Option<String>,
    /// Processes and threads of a script at most; 0 = no limit [default: 128].
    #[arg(long, value_name = "N", env = "WINDLASS_SCRIPT_PROCESSES_MAX")]
    script_processes_max: Option<String>,
    /// Bytes of memory of each process of a script at most; 0 = no limit [default: 1073741824].
    #[arg(long, value_name = "BYTES", env = "WINDLASS_SCRIPT_MEMORY_BYTES_MAX")]
    script_memory_bytes_max: Option<String>,
    /// Bytes of each file that a script writes at most; 0 = no limit [default: 268435456].
    #[arg(long, value_name = "BYTES", env = "WINDLASS_SCRIPT_FILE_BYTES_MAX")]
    script_file_bytes_max: Option<String>,
}

/// Which scripts a server runs, and how.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScriptConfig {
    pub(crate) policy: ScriptPolicy,
    pub(crate) limits: ScriptLimits,
    /// Scripts that run at once.
    pub(crate) at_once: usize,
    /// The user with the text that named it.
    pub(crate) user: Option<(ScriptUser, String)>,
}

impl ScriptConfig {
    /// The defaults with this policy.
    pub(crate) fn new(policy: ScriptPolicy) -> Self {
        let at_once = Settings::default().scripts_max;
        ScriptConfig { policy, limits: ScriptLimits::default(), at_once, user: None }
    }
}

impl ScriptArgs {
    pub(super) fn read(self, settings: &mut SettingReader<'_>) -> ScriptConfig {
        let policy = settings.read("allow_scripts", self.allow_scripts, ScriptPolicy::Off, |text| {
            truth(text).map(|allowed| if allowed { ScriptPolicy::All } else { ScriptPolicy::Off })
        });
        let user = settings.read("script_user", self.script_user, None, |text| {
            ScriptUser::parse(text).map(|user| Some((user, text.to_owned())))
        });
        let count = |text: &str| number(text, 0).map(Some);
        let at_once = settings.read("scripts_max", self.scripts_max, None, |text| {
            number(text, 1).map(|n| Some(usize::try_from(n).unwrap_or(usize::MAX)))
        });
        let processes = settings.read("script_processes_max", self.script_processes_max, None, count);
        let memory = settings.read("script_memory_bytes_max", self.script_memory_bytes_max, None, count);
        let file = settings.read("script_file_bytes_max", self.script_file_bytes_max, None, count);
        if policy == ScriptPolicy::Off {
            let given = [
                ("script_user", user.is_some()),
                ("scripts_max", at_once.is_some()),
                ("script_processes_max", processes.is_some()),
                ("script_memory_bytes_max", memory.is_some()),
                ("script_file_bytes_max", file.is_some()),
            ];
            for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
                settings.refuse(&format!(
                    "{key} has no effect without allow_scripts: allow scripts or leave it out"
                ));
            }
        }
        let default = ScriptLimits::default();
        let limits = ScriptLimits {
            processes_max: processes.unwrap_or(default.processes_max),
            memory_bytes_max: memory.unwrap_or(default.memory_bytes_max),
            file_bytes_max: file.unwrap_or(default.file_bytes_max),
        };
        let at_once = at_once.unwrap_or(Settings::default().scripts_max);
        ScriptConfig { policy, limits, at_once, user }
    }
}
