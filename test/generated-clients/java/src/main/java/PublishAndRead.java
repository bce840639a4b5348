import java.net.http.HttpRequest;
import java.util.List;
import java.util.Map;

import sluice.ApiClient;
import sluice.ApiException;
import sluice.api.EventsApi;
import sluice.api.EventsApi.*;
import sluice.api.KeysApi;
import sluice.api.KeysApi.*;
import sluice.api.SourcesApi;
import sluice.api.SourcesApi.*;
import sluice.api.UsersApi;
import sluice.api.UsersApi.*;
import sluice.model.*;

/** Publishes an event and reads it, with the client that openapi-generator has generated. Prints each operation that it has called. */
public class PublishAndRead {
  public static void main(String[] args) throws Exception {
    ApiClient client = clientWith(System.getenv("SLUICE_API_KEY"));
    UsersApi users = new UsersApi(client);
    KeysApi keys = new KeysApi(client);
    SourcesApi sources = new SourcesApi(client);
    EventsApi events = new EventsApi(client);

    must(users.getCurrentUser(APIGetCurrentUserRequest.newBuilder().build()).getData().getActualInstance() != null, "getCurrentUser");
    CreatedApiKey key = keys.createKey(APICreateKeyRequest.newBuilder().createKeyBody(new CreateKeyBody().scope(KeyScope.READ)).build()).getData();
    must(key.getKey().startsWith("slk_") && key.getScope() == KeyScope.READ, "createKey");

    Source source = sources.createSource(APICreateSourceRequest.newBuilder().createSourceBody(new CreateSourceBody().key("manual")).build()).getData();
    must(source.getActive(), "createSource");
    try {
      Map<String, Object> order = Map.of("order", 17);
      PublishedEvents published = events.publishSourceEvents(APIPublishSourceEventsRequest.newBuilder().id(source.getId()).body(order).build());
      must(published.getData().size() == 1, "publishSourceEvents");
      EventsApi reader = new EventsApi(clientWith(key.getKey()));
      List<EventSummary> read = List.of();
      for (int attempt = 0; read.isEmpty() && attempt < 300; attempt++) {
        Thread.sleep(100);
        read = reader.listSourceEvents(APIListSourceEventsRequest.newBuilder().id(source.getId()).expand("event").build()).getData();
      }
      must(read.get(0).getEvent().equals(order), "listSourceEvents");
    } finally {
      sources.deleteSource(APIDeleteSourceRequest.newBuilder().id(source.getId()).build());
      keys.deleteKey(APIDeleteKeyRequest.newBuilder().id(key.getId()).build());
    }
    try {
      sources.getSource(APIGetSourceRequest.newBuilder().id(source.getId()).build());
      throw new AssertionError("the source was not deleted");
    } catch (ApiException deleted) {
      must(deleted.getCode() == 404, "getSource");
    }
  }

  private static ApiClient clientWith(String key) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("SLUICE_URL"));
    client.setRequestInterceptor((HttpRequest.Builder request) -> request.header("Authorization", "Bearer " + key));
    return client;
  }

  private static void must(boolean isRight, String operation) {
    if (!isRight) throw new AssertionError(operation);
    System.out.println(operation);
  }
}
