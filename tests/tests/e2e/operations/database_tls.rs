//! TLS between a node and its database, with certificates made here: which certificates are trusted, and the messages
//! for those that are not.

use metering_tests::command::ProgramOutput;
use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::site::Site;

use crate::support::certificates::{authority, certificate};

const PASSWORD: &str = "hunter2";

/// A database with a certificate for these names, and its authority's certificate.
fn database(names: &[&str]) -> (Cluster, String) {
    let authority = authority("authority.example");
    let (certificate, key) = certificate(&authority, names);
    let cluster = Cluster::start_with_tls(&certificate.pem(), &key.serialize_pem());
    (cluster, authority.pem())
}

/// Tries to connect the server and the operator's program to a host with some options.
struct ConnectionTest<'c> {
    cluster: &'c Cluster,
    site: Site,
}

impl ConnectionTest<'_> {
    fn url(&self, host: &str, options: &str) -> String {
        format!("postgres://metering:{PASSWORD}@{host}:{}/postgres?{options}", self.cluster.address().port())
    }

    #[track_caller]
    fn assert_accepted(&self, host: &str, options: &str) {
        let site = Site::on_database(self.url(host, options));
        let output = site.admin(&["account", "create", "--agent-name", "a"]);
        assert_eq!(output.code, Some(0), "{host} {options}: {output:?}");
    }

    #[track_caller]
    fn assert_refused(&self, host: &str, options: &str, expected_texts: &[&str]) {
        let url = self.url(host, options);
        let server: ProgramOutput = self.site.server().set("METERING_DATABASE", &url).run();
        let admin = Site::on_database(url).admin(&["account", "create", "--agent-name", "a"]);
        for output in [server, admin] {
            assert!(matches!(output.code, Some(1 | 2)), "{host} {options}: {output:?}");
            assert!(expected_texts.iter().all(|text| output.stderr.contains(text)), "{host} {options}: {output:?}");
            assert!(!format!("{output:?}").contains(PASSWORD), "{output:?}");
        }
    }
}

#[test]
fn database_is_trusted_by_certificate_and_name() {
    metering_tests::skip_if!(is_skipped());
    let (cluster, authority_pem) = database(&["localhost"]);
    let site = Site::new();
    let right = site.write("right.pem", &authority_pem).display().to_string();
    let wrong = site.write("wrong.pem", &authority("other.example").pem()).display().to_string();
    let same_name = site.write("same_name.pem", &authority("authority.example").pem()).display().to_string();
    let empty = site.write("empty.pem", "").display().to_string();
    let connection_test = ConnectionTest { cluster: &cluster, site };
    for mode in ["require", "verify-ca", "verify-full", "prefer"] {
        connection_test.assert_accepted("localhost", &format!("sslmode={mode}&sslrootcert={right}"));
        let issuer = ["UnknownIssuer", "sslrootcert=FILE"];
        connection_test.assert_refused("localhost", &format!("sslmode={mode}&sslrootcert={wrong}"), &issuer);
        let forged = ["BadSignature", "sslrootcert=FILE"];
        connection_test.assert_refused("localhost", &format!("sslmode={mode}&sslrootcert={same_name}"), &forged);
        let name = ["certificate", "use a host name that the database's certificate is valid for"];
        connection_test.assert_refused("127.0.0.1", &format!("sslmode={mode}&sslrootcert={right}"), &name);
    }
    // The system does not trust the issuer.
    connection_test.assert_refused("localhost", "sslmode=require", &["UnknownIssuer", "sslrootcert=FILE"]);
    connection_test.assert_refused(
        "localhost",
        &format!("sslmode=require&sslrootcert={empty}"),
        &["no certificate in this file"],
    );
    connection_test.assert_refused(
        "localhost",
        "sslmode=require&sslrootcert=/nowhere.pem",
        &["sslrootcert /nowhere.pem"],
    );
    // Without encryption nothing is verified.
    connection_test.assert_accepted("127.0.0.1", "sslmode=disable");
}

#[test]
fn encryption_follows_what_either_side_requires() {
    metering_tests::skip_if!(is_skipped());
    let plain = Cluster::start(&["fsync=off"]);
    let connection_test = ConnectionTest { cluster: &plain, site: Site::new() };
    connection_test.assert_accepted("127.0.0.1", "sslmode=disable");
    connection_test.assert_accepted("127.0.0.1", "sslmode=prefer");
    connection_test.assert_accepted("127.0.0.1", "");
    for mode in ["require", "verify-full"] {
        let expected_texts = ["does not support TLS", "ssl = on", "sslmode=disable"];
        connection_test.assert_refused("127.0.0.1", &format!("sslmode={mode}"), &expected_texts);
    }
    connection_test.assert_refused("127.0.0.1", "sslmode=sometimes", &["sslmode"]);

    let (cluster, authority_pem) = database(&["localhost", "127.0.0.1"]);
    let site = Site::new();
    let right = site.write("right.pem", &authority_pem).display().to_string();
    let connection_test = ConnectionTest { cluster: &cluster, site };
    // A database that requires TLS.
    cluster.admit("hostssl all all all trust");
    connection_test.assert_refused("127.0.0.1", "sslmode=disable", &["no encryption"]);
    connection_test.assert_accepted("127.0.0.1", &format!("sslmode=prefer&sslrootcert={right}"));
    connection_test.assert_accepted("127.0.0.1", &format!("sslmode=require&sslrootcert={right}"));
    // A wrong password is refused, on any of several hosts.
    cluster.run("ALTER ROLE metering PASSWORD 'another'");
    cluster.admit("hostssl all all all scram-sha-256");
    connection_test.assert_refused(
        "127.0.0.1",
        &format!("sslmode=require&sslrootcert={right}"),
        &["password authentication failed"],
    );
    connection_test.assert_refused(
        "localhost,127.0.0.1",
        &format!("sslrootcert={right}"),
        &["password authentication failed"],
    );
}
