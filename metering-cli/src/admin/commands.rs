//! Groups of commands.

/// Declares the commands of a group: `Name(Arguments)`. The arguments have the description, and a method `run`.
macro_rules! commands {
    ($($Name:ident($Args:ty),)+) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($Name($Args),)+
        }

        impl Command {
            async fn run(
                self,
                session: &$crate::admin::session::Session,
                out: &mut dyn std::io::Write,
            ) -> Result<(), $crate::failure::Failure> {
                match self {
                    $(Self::$Name(args) => args.run(session, out).await,)+
                }
            }
        }
    };
}

pub(super) use commands;
