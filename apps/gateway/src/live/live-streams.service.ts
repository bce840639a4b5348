import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type EmitterId, type EventPlace, listEvents, streamOf, Unavailable, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { counter, gauge, LOG, type Log } from '#observability';
import { EventsService } from '../events/events.service.js';
import { catchUp, type StoredStream } from './catch-up.js';
import { LiveClient, type WantedStream } from './live-client.js';
import type { Seam } from './live-hub.js';
import type { LiveQuery } from './live-queries.js';
import { LiveReader } from './live-reader.js';
import { LiveConfig } from './live.config.js';
import { SseConnection } from './sse-connection.js';
import { commentFrame } from './sse-frame.js';
import { StorePositions } from './store-positions.js';

/** How long a stopping process waits for clients to take what is pending. */
const GOODBYE_MS = 1000;
const HEARTBEAT = commentFrame('still here');

const clients = gauge('live_clients', 'Open live streams.');
const cutOff = counter('live_cut_off_total', 'Live streams that were ended because their client did not read.');

/** Live streams: what an emitter emits, as it comes, to whoever listens over HTTP. */
@Injectable()
export class LiveStreamsService implements BeforeApplicationShutdown {
  private readonly open = new Set<SseConnection>();
  private heartbeat: NodeJS.Timeout | undefined;
  private stopping = false;

  constructor(
    private readonly events: EventsService,
    private readonly messages: Messages,
    private readonly reader: LiveReader,
    private readonly store: StorePositions,
    private readonly config: LiveConfig,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Streams until the client goes; returns when the stream has begun. Before that it throws what is wrong. */
  async stream(owner: UserId, emitterId: EmitterId, query: LiveQuery, after: EventPlace | null, reply: FastifyReply): Promise<void> {
    // whether there is such an emitter of the owner's, and such a stream: who asks for another's costs us nothing more
    await this.events.page(owner, emitterId, { event_name: query.event_name, limit: 1 });
    const connection = new SseConnection(reply);
    // a look at the headers is no reason to read the log
    if (reply.request.method === 'HEAD') {
      connection.begin();
      return connection.end();
    }
    const wanted: WantedStream = { emitterId, stream: streamOf(query.event_name), expand: query.expand === 'event', after };
    const client = new LiveClient(wanted, connection);
    await this.reader.open();
    if (this.stopping) throw new Unavailable('the service is stopping');
    // before the headers: what is emitted after they have arrived is shown
    const seam = this.reader.join(client);
    this.enter(connection);
    void connection.closed.then(() => this.leave(connection, client, owner, reply));
    connection.begin();
    if (after) void this.catchUp(client, after, seam, connection, owner);
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    const open = [...this.open];
    for (const connection of open) connection.end();
    const patience = setTimeout(() => open.forEach((connection) => connection.destroy()), GOODBYE_MS);
    await Promise.all(open.map(({ closed }) => closed));
    clearTimeout(patience);
    await Promise.race([this.reader.stop(), new Promise((resolve) => setTimeout(resolve, GOODBYE_MS).unref())]);
  }

  private enter(connection: SseConnection): void {
    this.open.add(connection);
    clients.set(this.open.size);
    this.heartbeat ??= setInterval(() => this.open.forEach((each) => each.beat(HEARTBEAT)), this.config.heartbeatMs);
  }

  private leave(connection: SseConnection, client: LiveClient, owner: UserId, reply: FastifyReply): void {
    this.reader.leave(client);
    this.open.delete(connection);
    clients.set(this.open.size);
    if (this.open.size === 0) {
      clearInterval(this.heartbeat);
      this.heartbeat = undefined;
    }
    if (connection.wasCutOff) cutOff.inc();
    this.log[connection.wasCutOff ? 'info' : 'debug'](
      {
        request_id: reply.request.id,
        account_id: owner,
        emitter_id: client.emitterId,
        stream: client.stream,
        events: client.sent,
        duration_ms: Math.round(reply.elapsedTime),
        cut_off: connection.wasCutOff,
      },
      'live.ended',
    );
  }

  private async catchUp(client: LiveClient, after: EventPlace, seam: Seam, connection: SseConnection, owner: UserId): Promise<void> {
    const gone = new AbortController();
    void connection.closed.then(() => gone.abort());
    const { emitterId, stream } = client;
    const stored: StoredStream = {
      reached: (wanted) => this.store.reached(wanted, gone.signal),
      page: (window, expand) => {
        gone.signal.throwIfAborted();
        return this.messages.request(listEvents, { owner_id: owner, emitter_id: emitterId, stream, expand, ...window }, { key: emitterId });
      },
    };
    try {
      await catchUp(client, after, seam, stored);
    } catch (error) {
      if (gone.signal.aborted) return;
      this.log.warn({ emitter_id: emitterId, err: error }, 'live.not-resumed');
      // the client comes again, with the id of the last event that it got
      connection.end();
    }
  }
}
