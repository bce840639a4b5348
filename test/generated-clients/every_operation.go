// Calls every operation with the client that oapi-codegen has generated. Prints each operation with the status of its response.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"go-client/sluice"
)

const code = `export default {
  name: 'Echo', key: 'go-echo', version: '0.0.1',
  props: { text: { type: 'string', async options() { return ['a', 'b'] } } },
  run(event) { console.log(this.text); this.$emit({ text: this.text, event }) },
}`

var externalId = "every-operation-go"

var ctx = context.Background()

// A response of the generated client.
type response interface{ StatusCode() int }

// The result of a call, until its status is known to be the expected one.
type result[R response] struct {
	response R
	err      error
}

func call[R response](response R, err error) result[R] { return result[R]{response, err} }

// The response, whose body must have been parsed as the model of the expected status.
func (r result[R]) is(status int) R {
	operation := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", r.response), "*sluice."), "Response")
	must(r.err == nil, operation, r.err)
	fields := reflect.ValueOf(r.response).Elem()
	must(r.response.StatusCode() == status, operation, r.response.StatusCode(), string(fields.FieldByName("Body").Bytes()))
	if status != http.StatusNoContent {
		name := fmt.Sprintf("JSON%d", status)
		if status >= 400 {
			name = "ApplicationproblemJSON" + fmt.Sprint(status)
		}
		must(!fields.FieldByName(name).IsNil(), operation, "no", name)
	}
	fmt.Println(strings.ToLower(operation[:1])+operation[1:], status)
	return r.response
}

func must(condition bool, message ...any) {
	if !condition {
		panic(fmt.Sprintln(message...))
	}
}

func eventually(check func() bool) {
	for range 300 {
		if check() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	panic("it did not become true in time")
}

func to[T any](value T) *T { return &value }

func clientWith(key string) *sluice.ClientWithResponses {
	authorized := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	client, err := sluice.NewClientWithResponses(os.Getenv("SLUICE_URL"), sluice.WithRequestEditorFn(authorized))
	must(err == nil, err)
	return client
}

// The first event of a stream: the generated function with a parsed body returns only at the end of the stream.
func firstStreamed(operation string, response *http.Response, err error) (event sluice.EventSummary) {
	must(err == nil && response.StatusCode == http.StatusOK, operation, err)
	defer response.Body.Close()
	fmt.Println(operation, response.StatusCode)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			must(json.Unmarshal([]byte(data), &event) == nil, data)
			return event
		}
	}
	panic("the stream has ended")
}

func main() {
	api := clientWith(os.Getenv("SLUICE_API_KEY"))
	receiver, workflow := os.Getenv("RECEIVER"), os.Getenv("WORKFLOW")

	// what a run that failed has left
	for _, each := range call(api.ListSourcesWithResponse(ctx, &sluice.ListSourcesParams{ExternalId: &externalId})).is(200).JSON200.Data {
		call(api.DeleteSourceWithResponse(ctx, each.Id)).is(204)
	}
	for _, each := range call(api.ListWebhooksWithResponse(ctx, &sluice.ListWebhooksParams{ExternalId: &externalId})).is(200).JSON200.Data {
		call(api.DeleteWebhookWithResponse(ctx, each.Id)).is(204)
	}

	// problems
	call(clientWith("slk_unknown").GetCurrentUserWithResponse(ctx, nil)).is(401)
	call(api.CreateComponentWithResponse(ctx, nil, sluice.CodeSource{ComponentCode: to("export default {")})).is(400)
	notFound := call(api.GetSourceWithResponse(ctx, "dc_000000000000", nil)).is(404)
	must(notFound.ApplicationproblemJSON404.RequestId != "")
	badUrl := call(api.CreateWebhookWithResponse(ctx, &sluice.CreateWebhookParams{Url: "ftp://example.com"})).is(400)
	must((*badUrl.ApplicationproblemJSON400.Errors)[0].Field == "url")

	// accounts and keys
	user, err := call(api.GetCurrentUserWithResponse(ctx, nil)).is(200).JSON200.Data.AsFreeUser()
	must(err == nil && user.Email != "", err)
	key := call(api.CreateKeyWithResponse(ctx, nil, sluice.CreateKeyBody{Name: to("reader"), Scope: to(sluice.Read)})).is(200).JSON200.Data
	call(clientWith(key.Key).CreateKeyWithResponse(ctx, nil, sluice.CreateKeyBody{})).is(403)
	must(len(call(api.ListKeysWithResponse(ctx, nil)).is(200).JSON200.Data) > 0)
	call(api.DeleteKeyWithResponse(ctx, key.Id)).is(204)

	// components
	must(call(api.ListRegistryWithResponse(ctx, &sluice.ListRegistryParams{Limit: to(100)})).is(200).JSON200.PageInfo.Count > 10)
	must(call(api.GetRegisteredComponentWithResponse(ctx, "manual", nil)).is(200).JSON200.Data.Name != "")
	component := call(api.CreateComponentWithResponse(ctx, nil, sluice.CodeSource{ComponentCode: to(code)})).is(200).JSON200.Data
	must(call(api.GetComponentWithResponse(ctx, component.Id, nil)).is(200).JSON200.Data.ConfigurableProps[0].Name == "text")
	must(len(call(api.ListComponentPropOptionsWithResponse(ctx, component.Id, "text", nil, sluice.OptionsBody{})).is(200).JSON200.Data.Options) == 2)

	// connections
	credentials := map[string]any{"token": "secret"}
	connection := call(api.CreateConnectionWithResponse(ctx, nil, sluice.CreateConnectionBody{App: "chat", Credentials: credentials})).is(200).JSON200.Data.Id
	call(api.PatchConnectionWithResponse(ctx, connection, nil, sluice.PatchConnectionBody{Name: to("Chat")})).is(200)
	must(call(api.GetConnectionWithResponse(ctx, connection, nil)).is(200).JSON200.Data.Name == "Chat")
	must(slices.ContainsFunc(call(api.ListConnectionsWithResponse(ctx, nil)).is(200).JSON200.Data, func(each sluice.Connection) bool { return each.Id == connection }))
	call(api.DeleteConnectionWithResponse(ctx, connection)).is(204)

	// sources
	props := map[string]any{"text": "a"}
	created := sluice.CreateSourceBody{ComponentId: &component.Id, ConfiguredProps: &props, Name: to("echo"), ExternalId: &externalId}
	source := call(api.CreateSourceWithResponse(ctx, nil, created)).is(200).JSON200.Data.Id
	must(call(api.ListSourcesWithResponse(ctx, &sluice.ListSourcesParams{ExternalId: &externalId})).is(200).JSON200.Data[0].Id == source)
	must(len(call(api.ListSourcePropOptionsWithResponse(ctx, source, "text", nil, sluice.OptionsBody{})).is(200).JSON200.Data.Options) == 2)
	inactive := sluice.UpdateSourceBody{ComponentId: &component.Id, ConfiguredProps: &props, Name: to("echo 2"), Active: to(false)}
	call(api.UpdateSourceWithResponse(ctx, source, nil, inactive)).is(200)
	call(api.RunSourceWithResponse(ctx, source, nil, sluice.RunSourceBody{})).is(409)
	call(api.PatchSourceWithResponse(ctx, source, nil, sluice.PatchSourceBody{Active: to(true)})).is(200)
	must(call(api.GetSourceWithResponse(ctx, source, nil)).is(200).JSON200.Data.Active)

	// webhooks and subscriptions
	webhook := call(api.CreateWebhookWithResponse(ctx, &sluice.CreateWebhookParams{Url: receiver, Name: to("go"), ExternalId: &externalId})).is(200).JSON200.Data.Id
	call(api.UpdateWebhookWithResponse(ctx, webhook, nil, sluice.UpdateWebhookBody{Url: &receiver, Name: to("go 2")})).is(200)
	call(api.PatchWebhookWithResponse(ctx, webhook, nil, sluice.UpdateWebhookBody{Description: to("of Go")})).is(200)
	must(*call(api.GetWebhookWithResponse(ctx, webhook, nil)).is(200).JSON200.Data.Description == "of Go")
	must(*call(api.ListWebhooksWithResponse(ctx, &sluice.ListWebhooksParams{ExternalId: &externalId})).is(200).JSON200.Data[0].Name == "go 2")
	must(*call(api.TestWebhookWithResponse(ctx, webhook, nil)).is(200).JSON200.Data.StatusCode/100 == 2)
	secret := call(api.GetWebhookSecretWithResponse(ctx, webhook, nil)).is(200).JSON200.Data.Secret
	must(call(api.RotateWebhookSecretWithResponse(ctx, webhook, nil)).is(200).JSON200.Data.Secret != secret)
	call(api.CreateSubscriptionWithResponse(ctx, &sluice.CreateSubscriptionParams{EmitterId: source, ListenerId: webhook})).is(200)
	must(slices.ContainsFunc(call(api.ListSubscriptionsWithResponse(ctx, nil)).is(200).JSON200.Data, func(each sluice.Subscription) bool { return each.ListenerId == webhook }))
	call(api.CreateAutoSubscriptionWithResponse(ctx, &sluice.CreateAutoSubscriptionParams{ListenerId: webhook, EventName: "$errors"})).is(200)
	must(slices.ContainsFunc(call(api.ListAutoSubscriptionsWithResponse(ctx, nil)).is(200).JSON200.Data, func(each sluice.AutoSubscription) bool { return each.ListenerId == webhook }))
	call(api.DeleteAutoSubscriptionWithResponse(ctx, &sluice.DeleteAutoSubscriptionParams{ListenerId: webhook, EventName: "$errors"})).is(200)

	// events
	call(api.RunSourceWithResponse(ctx, source, nil, sluice.RunSourceBody{Event: map[string]any{"n": 2}})).is(202)
	eventually(func() bool {
		runs := call(api.ListRunsWithResponse(ctx, source, nil)).is(200).JSON200.Data
		return len(runs) > 0 && runs[0].Emitted == 1
	})
	event := map[string]any{"order": 17}
	cloudEvent := sluice.CloudEvent{Id: "1", Source: "/go", Type: "default", Specversion: sluice.N10, Data: event}
	must(call(api.PublishSourceEventsWithResponse(ctx, source, nil, event)).is(202).JSON202.Data[0].EmitId != "")
	call(api.PublishSourceEventsWithApplicationCloudeventsBatchPlusJSONBodyWithResponse(ctx, source, nil, sluice.CloudEventBatch{cloudEvent})).is(202)
	var events []sluice.EventSummary
	eventually(func() bool {
		events = call(api.ListSourceEventsWithResponse(ctx, source, &sluice.ListSourceEventsParams{Expand: to("event")})).is(200).JSON200.Data
		return len(events) == 3
	})
	must(reflect.DeepEqual(events[0].Event, map[string]any{"order": 17.0}), events[0].Event)
	must(call(api.PollSourceEventsWithResponse(ctx, source, nil)).is(200).JSON200.Data[0].Id == events[0].Id)
	must(call(api.ListSourceStreamsWithResponse(ctx, source, nil)).is(200).JSON200.Data[0].Count == 3)
	must(len(call(api.ListSourceLogsWithResponse(ctx, source, nil)).is(200).JSON200.Data) == 1)
	stream, err := api.StreamSourceEvents(ctx, source, &sluice.StreamSourceEventsParams{After: &events[2].Id})
	must(firstStreamed("streamSourceEvents", stream, err).Id == events[1].Id)
	must(call(api.GetSourceStatsWithResponse(ctx, source, nil)).is(200).JSON200.Data.BucketS == 3600)

	// deliveries
	var delivery sluice.WebhookDelivery
	eventually(func() bool {
		for _, delivery = range call(api.ListDeliveriesWithResponse(ctx, webhook, nil)).is(200).JSON200.Data {
			if delivery.Status == "succeeded" {
				return true
			}
		}
		return false
	})
	listeners := call(api.ListSourceEventDeliveriesWithResponse(ctx, source, delivery.EventId, nil)).is(200).JSON200.Data
	must(len(listeners) == 1 && listeners[0].ListenerId == webhook && listeners[0].Status == "succeeded", listeners)
	call(api.RetryDeliveryWithResponse(ctx, webhook, delivery.Id, nil)).is(202)
	call(api.RecoverDeliveriesWithResponse(ctx, webhook, &sluice.RecoverDeliveriesParams{Since: "2026-01-31T12:00:00Z"})).is(202)
	must(call(api.GetWebhookStatsWithResponse(ctx, webhook, nil)).is(200).JSON200.Data.BucketS == 3600)

	// replays
	body := sluice.CreateReplayBody{EmitterId: source, ListenerId: webhook, DryRun: to(true)}
	must(body.From.FromReplayEnd1(0) == nil && body.To.FromReplayEnd0("2100-01-01") == nil)
	must(call(api.CreateReplayWithResponse(ctx, nil, body)).is(200).JSON200.Data.Events == 3)
	body.DryRun = nil
	replay := call(api.CreateReplayWithResponse(ctx, nil, body)).is(202).JSON202.Data.Id
	must(call(api.GetReplayWithResponse(ctx, replay, nil)).is(200).JSON200.Data.Id == replay)
	call(api.CancelReplayWithResponse(ctx, replay, nil)).is(200)

	// a workflow
	call(api.PublishWorkflowEventsWithResponse(ctx, workflow, nil, event)).is(202)
	call(api.PublishWorkflowEventsWithApplicationCloudeventsPlusJSONBodyWithResponse(ctx, workflow, nil, cloudEvent)).is(202)
	eventually(func() bool {
		events = call(api.ListWorkflowEventsWithResponse(ctx, workflow, nil)).is(200).JSON200.Data
		return len(events) >= 2
	})
	must(len(call(api.ListWorkflowErrorsWithResponse(ctx, workflow, nil)).is(200).JSON200.Data) == 0)
	must(call(api.ListWorkflowStreamsWithResponse(ctx, workflow, nil)).is(200).JSON200.Data[0].Count >= 2)
	must(len(call(api.ListWorkflowEventDeliveriesWithResponse(ctx, workflow, events[0].Id, nil)).is(200).JSON200.Data) == 0)
	stream, err = api.StreamWorkflowEvents(ctx, workflow, &sluice.StreamWorkflowEventsParams{After: &events[1].Id})
	must(firstStreamed("streamWorkflowEvents", stream, err).Id == events[0].Id)
	call(api.GetWorkflowStatsWithResponse(ctx, workflow, nil)).is(200)

	// deletions
	call(api.DeleteSourceEventsWithResponse(ctx, source, nil)).is(202)
	call(api.DeleteSubscriptionWithResponse(ctx, &sluice.DeleteSubscriptionParams{EmitterId: source, ListenerId: webhook})).is(200)
	call(api.DeleteWebhookWithResponse(ctx, webhook)).is(204)
	call(api.DeleteSourceWithResponse(ctx, source)).is(204)
}
