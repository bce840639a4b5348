"""Calls every operation with the client that openapi-python-client has generated. Prints each operation with the status of its response."""

import importlib
import json
import os
import pkgutil
import time

from sluice_client import AuthenticatedClient, api
from sluice_client.models import *  # noqa: F403

CODE = """export default {
  name: 'Echo', key: 'python-echo', version: '0.0.1',
  props: { text: { type: 'string', async options() { return ['a', 'b'] } } },
  run(event) { console.log(this.text); this.$emit({ text: this.text, event }) },
}"""
EXTERNAL_ID = "every-operation-python"
OPTIONS = [{"label": "a", "value": "a"}, {"label": "b", "value": "b"}]
OPERATIONS = {
    module.name.split(".")[-1]: importlib.import_module(module.name)
    for module in pkgutil.walk_packages(api.__path__, f"{api.__name__}.")
    if not module.ispkg
}


def client_with(key):
    return AuthenticatedClient(base_url=os.environ["SLUICE_URL"], token=key, raise_on_unexpected_status=True)


sluice = client_with(os.environ["SLUICE_API_KEY"])


def call(operation, *path, status=200, client=sluice, **parameters):
    """Returns the body, which must have been parsed as the model of the expected status."""
    response = OPERATIONS[operation].sync_detailed(*path, client=client, **parameters)
    assert response.status_code == status, f"{operation}: {response.status_code} {response.content}"
    is_typed = response.parsed is None if status == 204 else isinstance(response.parsed, Problem) == (status >= 400)
    assert is_typed, f"{operation}: {response.parsed}"
    print(operation, status)
    return response.parsed


def eventually(check):
    """Repeats the check until its result is true."""
    for _ in range(300):
        if result := check():
            return result
        time.sleep(0.1)
    raise AssertionError("it did not become true in time")


def first_streamed(operation, emitter, after):
    """The first event of a stream: the generated function returns only at the end of the stream."""
    request = OPERATIONS[operation]._get_kwargs(emitter, after=after)
    with sluice.get_httpx_client().stream(**request, timeout=60) as response:
        assert response.status_code == 200
        print(operation, 200)
        data = next(line for line in response.iter_lines() if line.startswith("data: "))
        return EventSummary.from_dict(json.loads(data.removeprefix("data: ")))


# what a run that failed has left
for each in call("list_sources", external_id=EXTERNAL_ID).data:
    call("delete_source", each.id, status=204)
for each in call("list_webhooks", external_id=EXTERNAL_ID).data:
    call("delete_webhook", each.id, status=204)

# problems
call("get_current_user", status=401, client=client_with("slk_unknown"))
assert call("create_component", status=400, body=CodeSource(component_code="export default {")).detail
assert call("get_source", "dc_000000000000", status=404).request_id
assert call("create_webhook", status=400, url_query="ftp://example.com").errors[0].field == "url"

# accounts and keys
assert call("get_current_user").data.email
key = call("create_key", body=CreateKeyBody(name="reader", scope=KeyScope.READ)).data
assert key.key.startswith("slk_")
call("create_key", body=CreateKeyBody(), client=client_with(key.key), status=403)
assert key.id in [each.id for each in call("list_keys", limit=100).data]
call("delete_key", key.id, status=204)

# components
assert call("list_registry", limit=100).page_info.count > 10
assert call("get_registered_component", "manual").data.name
component = call("create_component", body=CodeSource(component_code=CODE)).data
assert call("get_component", component.id).data.configurable_props[0].name == "text"
assert call("list_component_prop_options", component.id, "text", body=OptionsBody()).data.options == OPTIONS

# connections
credentials = CreateConnectionBodyCredentials.from_dict({"token": "secret"})
connection = call("create_connection", body=CreateConnectionBody(app="chat", credentials=credentials)).data
call("patch_connection", connection.id, body=PatchConnectionBody(name="Chat"))
assert call("get_connection", connection.id).data.name == "Chat"
assert connection.id in [each.id for each in call("list_connections").data]
call("delete_connection", connection.id, status=204)

# sources
props = CreateSourceBodyConfiguredProps.from_dict({"text": "a"})
body = CreateSourceBody(component_id=component.id, name="echo", configured_props=props, external_id=EXTERNAL_ID)
source = call("create_source", body=body).data.id
assert call("list_sources", external_id=EXTERNAL_ID).data[0].id == source
assert call("list_source_prop_options", source, "text", body=OptionsBody()).data.options == OPTIONS
props = UpdateSourceBodyConfiguredProps.from_dict({"text": "b"})
call("update_source", source, body=UpdateSourceBody(component_id=component.id, configured_props=props, name="echo 2", active=False))
call("run_source", source, body=RunSourceBody(event={"n": 1}), status=409)
call("patch_source", source, body=PatchSourceBody(active=True))
assert call("get_source", source).data.active is True

# webhooks and subscriptions
webhook = call("create_webhook", url_query=os.environ["RECEIVER"], name="python", external_id=EXTERNAL_ID).data.id
call("update_webhook", webhook, body=UpdateWebhookBody(url=os.environ["RECEIVER"], name="python 2"))
call("patch_webhook", webhook, body=UpdateWebhookBody(description="of Python"))
assert call("get_webhook", webhook).data.description == "of Python"
assert call("list_webhooks", external_id=EXTERNAL_ID).data[0].name == "python 2"
assert call("test_webhook", webhook).data.status_code in range(200, 300)
secret = call("get_webhook_secret", webhook).data.secret
assert call("rotate_webhook_secret", webhook).data.secret != secret
assert call("create_subscription", emitter_id=source, listener_id=webhook).data[0].listener_id == webhook
assert webhook in [each.listener_id for each in call("list_subscriptions").data]
call("create_auto_subscription", listener_id=webhook, event_name="$errors")
assert webhook in [each.listener_id for each in call("list_auto_subscriptions").data]
call("delete_auto_subscription", listener_id=webhook, event_name="$errors")

# events
call("run_source", source, body=RunSourceBody(event={"n": 2}), status=202)
assert eventually(lambda: call("list_runs", source).data)[0].emitted == 1
event = PublishSourceEventsJsonBody.from_dict({"order": 17})
assert call("publish_source_events", source, body=event, status=202).data[0].emit_id
cloud_event = CloudEvent(specversion=CloudEventSpecversion.VALUE_0, id="1", source="/python", type_="default", data={"order": 18})
call("publish_source_events", source, body=cloud_event, status=202)
events = eventually(lambda: (page := call("list_source_events", source, expand="event").data)[2:] and page)
assert {"order": 17} in [each.event for each in events]
assert call("poll_source_events", source).data[0].id == events[0].id
assert call("list_source_streams", source).data[0].count == 3
assert call("list_source_logs", source).data[0].event
assert first_streamed("stream_source_events", source, after=events[2].id).id == events[1].id
assert sum(bucket.events for bucket in call("get_source_stats", source, window=StatsWindow.VALUE_0).data.buckets) >= 0

# deliveries
delivered = lambda: [each for each in call("list_deliveries", webhook).data if each.status == WebhookDeliveryStatus.SUCCEEDED]
delivery = eventually(delivered)[0]
listeners = call("list_source_event_deliveries", source, delivery.event_id).data
assert [(each.listener_id, each.status) for each in listeners] == [(webhook, EventListenerStatus.SUCCEEDED)]
call("retry_delivery", webhook, delivery.id, status=202)
call("recover_deliveries", webhook, since="2026-01-31T12:00:00Z", status=202)
assert call("get_webhook_stats", webhook).data.bucket_s == 3600

# replays
ends = {"emitter_id": source, "listener_id": webhook, "from_": 0, "to": "2100-01-01"}
assert call("create_replay", body=CreateReplayBody(**ends, dry_run=True)).data.events == 3
replay = call("create_replay", body=CreateReplayBody(**ends), status=202).data.id
assert call("get_replay", replay).data.id == replay
call("cancel_replay", replay)

# a workflow
workflow = os.environ["WORKFLOW"]
event = PublishWorkflowEventsJsonBody.from_dict({"order": 17})
call("publish_workflow_events", workflow, body=event, status=202)
call("publish_workflow_events", workflow, body=event, event_name="*", status=400)
call("publish_workflow_events", workflow, body=event, status=202)
events = eventually(lambda: (page := call("list_workflow_events", workflow).data)[1:] and page)
assert call("list_workflow_errors", workflow).data == []
assert call("list_workflow_streams", workflow).data[0].count >= 2
assert call("list_workflow_event_deliveries", workflow, events[0].id).data == []
assert first_streamed("stream_workflow_events", workflow, after=events[1].id).id == events[0].id
call("get_workflow_stats", workflow)

# deletions
call("delete_source_events", source, status=202)
call("delete_subscription", emitter_id=source, listener_id=webhook)
call("delete_webhook", webhook, status=204)
call("delete_source", source, status=204)
