//! Webhooks with many deliveries are deleted in several transactions, and the deletion can be repeated if it is cut short.

use metering_core::events::{DeliveryFilter, WebhookId, WebhookState};
use metering_core::store::EventStore;
use metering_tests::postgres::run_in;

use crate::event_deliveries::claim;
use crate::events::{post, terms, webhook};
use crate::hold_scene::Scene;
use crate::lost_commits::NOON;

const DELIVERIES: usize = 2_500;

/// Records each deletion of deliveries, with its transaction. The third one fails while `is_failing` has a row.
const RECORDER: &str = "CREATE TABLE is_failing (); \
     CREATE TABLE deleted (rows BIGINT, transaction BIGINT); \
     CREATE FUNCTION record() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN \
       IF EXISTS (SELECT FROM is_failing) AND (SELECT count(*) FROM deleted) = 2 THEN RAISE 'cut short'; END IF; \
       INSERT INTO deleted SELECT count(*), txid_current() FROM old_rows HAVING count(*) > 0; \
       RETURN NULL; END $$; \
     CREATE TRIGGER record AFTER DELETE ON delivery REFERENCING OLD TABLE AS old_rows \
       FOR EACH STATEMENT EXECUTE FUNCTION record()";

/// Runs SQL in the scene's schema.
fn run(scene: &Scene, sql: &str) -> String {
    run_in(&scene.url, sql)
}

/// Writes many deliveries to a webhook, and one to each webhook of the account.
async fn fill(scene: &Scene, public_id: &WebhookId) {
    let public_id: String = public_id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    run(
        scene,
        &format!(
            "WITH written AS (INSERT INTO event (account, kind, data, created_at) \
               SELECT a.id, 'key.created', '{{}}', 0 FROM account a, generate_series(1, {DELIVERIES}) \
               RETURNING number, account) \
             INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at) \
               SELECT w.id, e.number, e.account, CASE e.number % 3 WHEN 0 THEN 'pending' ELSE 'delivered' END, 0, 0, 0 \
               FROM written e, webhook w WHERE w.public_id = '\\x{public_id}'; \
             UPDATE delivery SET is_head = TRUE WHERE id = (SELECT min(id) FROM delivery WHERE state = 'pending')"
        ),
    );
}

/// How many deliveries there are to any webhook.
async fn count(scene: &Scene) -> usize {
    scene.node.deliveries(None, DeliveryFilter::default(), None, 10_000).await.unwrap().items.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_made_in_portions_and_can_be_repeated() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    let [hook, other] = [webhook(&scene.other, &scene.id).await, webhook(&scene.other, &scene.id).await];
    fill(&scene, &hook).await;
    scene.other.test_webhook(Some(&scene.id), &other, NOON).await.unwrap().unwrap();
    run(&scene, &format!("{RECORDER}; INSERT INTO is_failing DEFAULT VALUES"));
    scene.node.delete_webhook(&scene.id, &hook).await.unwrap_err();
    assert_eq!(count(&scene).await, DELIVERIES - 2_000 + 1);
    let left = scene.node.webhooks(Some(&scene.id)).await.unwrap();
    assert_eq!((left[0].id, left[0].state), (hook, WebhookState::Disabled));
    assert_eq!(claim(&scene.node, NOON, 9).await.len(), 1, "the other webhook's");
    run(&scene, "DELETE FROM is_failing");
    assert!(scene.node.delete_webhook(&scene.id, &hook).await.unwrap());
    assert_eq!(run(&scene, "SELECT string_agg(rows::TEXT, ' ') FROM deleted"), "1000 1000 500");
    assert_eq!(run(&scene, "SELECT count(DISTINCT transaction) FROM deleted"), "3");
    assert!(!scene.other.delete_webhook(&scene.id, &hook).await.unwrap());
    assert_eq!((scene.other.webhooks(Some(&scene.id)).await.unwrap()[0].id, count(&scene).await), (other, 1));
}

/// Setting the operator's webhook ends a deletion of it that was cut short.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_webhook_is_deleted_in_portions_or_set_again() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    let set = async |is_set: bool| scene.node.set_operator_webhook(is_set.then(terms), NOON).await;
    set(true).await.unwrap();
    fill(&scene, &WebhookId::OPERATOR).await;
    run(&scene, &format!("{RECORDER}; INSERT INTO is_failing DEFAULT VALUES"));
    set(false).await.unwrap_err();
    scene.other.set_balance_alert(&scene.id, Some(crate::events::atoms(500))).await.unwrap().unwrap();
    post(&scene.other, &scene.id, -501).await;
    assert_eq!(count(&scene).await, DELIVERIES - 2_000, "it gets no more");
    set(true).await.unwrap();
    let own = scene.other.webhooks(None).await.unwrap();
    assert_eq!((own.len(), own[0].state), (1, WebhookState::Active));
    assert_eq!(claim(&scene.node, NOON, 9).await.len(), 1);
    post(&scene.other, &scene.id, 501).await;
    post(&scene.other, &scene.id, -501).await;
    assert_eq!(count(&scene).await, DELIVERIES - 2_000 + 1);
    run(&scene, "DELETE FROM is_failing");
    set(false).await.unwrap();
    assert_eq!(run(&scene, "SELECT string_agg(rows::TEXT, ' ') FROM deleted"), "1000 1000 501");
    assert_eq!((scene.other.webhooks(None).await.unwrap(), count(&scene).await), (vec![], 0));
    set(false).await.unwrap();
}
