//! Groups of commands, and shared arguments.

use clap::builder::RangedU64ValueParser;

/// Reads a number from 1 to `most`.
pub(crate) fn up_to(most: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=most)
}

/// Declares a group: its attributes, which have its help, and its commands, `Name(Arguments)`. The arguments have the
/// description of the command, and a method `run`. After `with session`, commands get the session of the run, and so do
/// those of a declaration that has no group.
macro_rules! commands {
    ($(#[$($help:tt)*])* $Group:ident { $($Name:ident($Args:ty),)+ }) => {
        #[derive(Debug, clap::Args)]
        #[command(arg_required_else_help = true)]
        $(#[$($help)*])*
        pub(crate) struct $Group {
            #[command(subcommand)]
            command: Command,
        }

        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($Name($Args),)+
        }

        impl $Group {
            pub(crate) async fn run(self, out: &mut dyn std::io::Write) -> Result<(), $crate::failure::Failure> {
                match self.command {
                    $(Command::$Name(args) => args.run(out).await,)+
                }
            }
        }
    };
    ($(#[$($help:tt)*])* $Group:ident with session { $($Name:ident($Args:ty),)+ }) => {
        #[derive(Debug, clap::Args)]
        #[command(arg_required_else_help = true)]
        $(#[$($help)*])*
        pub(crate) struct $Group {
            #[command(subcommand)]
            command: Command,
        }

        $crate::commands::commands! { $($Name($Args),)+ }

        impl $Group {
            pub(crate) async fn run(
                self,
                session: &$crate::admin::session::Session,
                out: &mut dyn std::io::Write,
            ) -> Result<(), $crate::failure::Failure> {
                self.command.run(session, out).await
            }
        }
    };
    ($($Name:ident($Args:ty),)+) => {
        $crate::commands::commands! { enum Command: $($Name($Args),)+ }
    };
    ($(#[$($help:tt)*])* enum $Command:ident: $($Name:ident($Args:ty),)+) => {
        #[derive(Debug, clap::Subcommand)]
        $(#[$($help)*])*
        enum $Command {
            $($Name($Args),)+
        }

        impl $Command {
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

pub(crate) use commands;
