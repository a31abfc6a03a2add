//! Running a server: its settings, its endpoints for operators, its traces, its disk, continuous backup, upgrades, and
//! how it stops.

mod administration;
mod catalogues;
mod command_line;
mod configuration;
mod database_tls;
mod disk_faults;
mod endpoints;
mod litestream;
mod monitoring;
mod oidc;
mod prices;
mod refills;
mod reload;
mod service_manager;
mod shutdown;
mod sigkill;
mod traces;
mod upgrade;
