import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type EmitterId, listEvents, SluiceError, TimedOut, Unavailable, type UserId } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { type EventPlace, streamOf } from '#events';
import { AccountPace } from '#fairness';
import { Messages } from '#messaging';
import { counter, gauge, LOG, type Log } from '#observability';
import { LimitPerKey, type Place, QueuePerKey } from '#limits';
import { within } from '#service';
import { AccountsService } from '../accounts/accounts.service.js';
import type { Caller } from '../accounts/account.decorator.js';
import { EventsService } from '../events/events.service.js';
import { AccountStreams } from './account-streams.js';
import { catchUp, isSoon, type StoredStream } from './catch-up.js';
import { LiveClient, type WantedStream } from './live-client.js';
import type { Seam } from './live-hub.js';
import type { LiveQuery } from './live-query.js';
import { LiveReader } from './live-reader.js';
import { LiveConfig } from './live.config.js';
import { SseConnection } from './sse-connection.js';
import { commentFrame } from './live-event.js';
import { StorePositions } from './store-positions.js';

/** When its stream ends, a client has this long to read what is pending. */
const GOODBYE_MS = 1000;
/** For one account: all of its streams may reconnect at once, and a page of missed events can have some megabytes. */
const PAGES_AT_ONCE = 8;
/** New streams do not wait for those pages. */
const LOOKUPS_AT_ONCE = 8;
/** A request for a stream waits for this long for its turn and its page, as other requests do for a reply. */
const FOUND_WITHIN_MS = 10_000;
const HEARTBEAT = commentFrame('still here');

const clients = gauge('live_clients', 'Open live streams.');
const cutOff = counter(
  'live_cut_off_total',
  'Live streams that were closed because too much waited for their clients, or these did not read.',
);

/** Live streams: send the events of an emitter over HTTP as they are emitted. */
@Injectable()
export class LiveStreamsService implements BeforeApplicationShutdown {
  private readonly open = new Map<SseConnection, { apiKey: string; emitterId: EmitterId }>();
  private heartbeat: NodeJS.Timeout | undefined;
  /** The number of streams of each account, including those that are starting. */
  private readonly taken: LimitPerKey<UserId>;
  private readonly ofAccounts = new Map<UserId, AccountStreams>();
  private readonly lookups = new QueuePerKey<UserId>(() => LOOKUPS_AT_ONCE, Infinity);
  private readonly pages = new QueuePerKey<UserId>(() => PAGES_AT_ONCE, Infinity);
  private stopping = false;

  constructor(
    private readonly events: EventsService,
    private readonly messages: Messages,
    private readonly reader: LiveReader,
    private readonly store: StorePositions,
    private readonly config: LiveConfig,
    private readonly accounts: AccountsService,
    private readonly emitters: EmitterDirectory,
    private readonly pace: AccountPace,
    @Inject(LOG) private readonly log: Log,
  ) {
    this.taken = new LimitPerKey(config.maxPerAccount);
  }

  /** Streams until the client disconnects; returns when the stream has begun. Throws if it cannot begin. */
  async stream(caller: Caller, emitterId: EmitterId, query: LiveQuery, after: EventPlace | null, reply: FastifyReply): Promise<void> {
    const owner = caller.account.id;
    if (this.stopping) throw new Unavailable('the service is stopping');
    const connection = this.connect(owner, reply);
    // throws if the owner does not have this emitter, or the stream does not exist
    const find = () => {
      const page = () => this.events.page(owner, emitterId, { event_name: query.event_name, limit: 1 });
      return within(
        FOUND_WITHIN_MS,
        inTurn(this.lookups.join(owner)!, connection, page),
        () => new TimedOut('the event store has not replied in time'),
      );
    };
    if (reply.request.method === 'HEAD') {
      await find();
      connection.begin();
      return connection.end();
    }
    this.takePlace(owner, connection);
    const wanted: WantedStream = { emitterId, stream: streamOf(query.event_name), expand: query.expand === 'event', after };
    const client = new LiveClient(wanted, connection);
    const found = find();
    const joined = this.reader.join(client);
    const stored = after && this.stored(wanted, owner, joined, connection);
    try {
      // concurrently: a client that reconnects wants to continue soon
      await Promise.all([found, joined]);
      if (this.stopping) throw new Unavailable('the service is stopping');
    } catch (error) {
      joined.then(
        () => this.reader.leave(client),
        () => {},
      );
      if (connection.isClosed) return;
      throw error;
    }
    this.enter(connection, { apiKey: caller.apiKey, emitterId });
    void connection.closed.then(() => this.leave(connection, client, owner, reply));
    // only after it has joined, so that the client gets every event emitted after it has received the headers
    connection.begin();
    if (client.after && stored) return void this.catchUp(client, client.after, await joined, stored, connection);
    // its last event cannot be compared with those that are stored
    if (after) client.remarkGap();
    void client.goLive();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    const open = [...this.open.keys()];
    await Promise.all(open.map((connection) => connection.endWithin(GOODBYE_MS)));
    await Promise.race([this.reader.stop(), sleep(GOODBYE_MS, undefined, { ref: false })]);
  }

  private connect(owner: UserId, reply: FastifyReply): SseConnection {
    const account = this.ofAccounts.get(owner) ?? new AccountStreams();
    this.ofAccounts.set(owner, account);
    const connection = new SseConnection(reply, account);
    void connection.closed.then(() => {
      if (account.isUnused) this.ofAccounts.delete(owner);
    });
    return connection;
  }

  /** Reserves one of the account's streams until the connection is closed. Throws if the limit is reached. */
  private takePlace(owner: UserId, { closed }: SseConnection): void {
    const release = this.taken.acquire(owner);
    if (!release) throw new SluiceError('too_many_requests', `an account can have at most ${this.config.maxPerAccount} open live streams`);
    void closed.then(release);
  }

  private enter(connection: SseConnection, stream: { apiKey: string; emitterId: EmitterId }): void {
    this.open.set(connection, stream);
    clients.set(this.open.size);
    this.heartbeat ??= setInterval(() => void this.beat(), this.config.heartbeatMs);
  }

  /** Ends the streams whose key was revoked or whose emitter was deleted, and sends a comment to the others to keep them open. */
  private async beat(): Promise<void> {
    for (const connection of this.open.keys()) connection.beat(HEARTBEAT);
    try {
      const looked = new Map(this.open);
      const streams = [...looked.values()];
      const [valid, emitters] = await Promise.all([
        this.accounts.stillValid(new Set(streams.map(({ apiKey }) => apiKey))),
        this.emitters.known([...new Set(streams.map(({ emitterId }) => emitterId))]),
      ]);
      for (const [connection, { apiKey, emitterId }] of looked) {
        const isOver = !valid.has(apiKey) || emitters.get(emitterId)?.deleted;
        if (isOver && !connection.isClosed) void connection.endWithin(GOODBYE_MS);
      }
    } catch (error) {
      // the next heartbeat checks again
      this.log.warn({ err: error }, 'live.not-checked');
    }
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

  private stored({ emitterId, stream }: WantedStream, owner: UserId, joined: Promise<Seam>, connection: SseConnection): StoredStream {
    const gone = new AbortController();
    void connection.closed.then(() => gone.abort());
    // starts now, not at the first await of it
    const reached = joined.then((seam) => this.store.reached(seam, emitterId, gone.signal));
    reached.catch(() => {});
    return {
      reached: () => isSoon(reached),
      page: async (window, expand) => {
        // the pages before it have cost the account something, and one can have some megabytes. It has no turn yet: its other streams wait for theirs, too
        await this.pace.delayRequest(owner, 0);
        return inTurn(this.pages.join(owner)!, connection, () => {
          const query = { owner_id: owner, emitter_id: emitterId, stream, expand, ...window };
          return this.messages.request(listEvents, query, { account: owner, key: emitterId });
        });
      },
    };
  }

  private async catchUp(client: LiveClient, after: EventPlace, seam: Seam, stored: StoredStream, connection: SseConnection): Promise<void> {
    try {
      await catchUp(client, after, seam, stored);
    } catch (error) {
      if (connection.isClosed) return;
      this.log.warn({ emitter_id: client.emitterId, err: error }, 'live.not-resumed');
      // the client reconnects, with the id of the last event that it received
      connection.end();
    }
  }
}

/** Reads a page when it is the account's turn, unless the client has disconnected. */
async function inTurn<Page>(place: Place, connection: SseConnection, read: () => Promise<Page>): Promise<Page> {
  try {
    await Promise.race([place.turn, connection.closed]);
    if (connection.isClosed) throw new Unavailable('the client has disconnected');
    return await read();
  } finally {
    place.leave();
  }
}
