import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type EmitterId, newId, type UserId, type WebhookId } from '#contracts';
import type { EventPlace } from '#events';
import type { Attempt, Delivery } from '../delivery.js';
import { UNSHARED } from './delivery-store-in-memory-for-tests.js';
import type { Claim, DeliveryStore, Failed, ReportOf } from './delivery-store.js';

export interface StoreUnderTest {
  store: DeliveryStore;
  /** Makes a webhook; a limited one is spilled from the beginning. */
  addWebhook(id: WebhookId, ownerId: UserId, rateLimit?: number): Promise<void>;
  /** Requests an attempt, as a user does. */
  retry(id: WebhookId, ownerId: UserId, place: EventPlace): Promise<void>;
  /** Switches a webhook on, as a user does. */
  activate(id: WebhookId, ownerId: UserId): Promise<void>;
  close(): Promise<void>;
}

const LONG = 60_000;
const ATTEMPT: Attempt = { ts: 1, status_code: 500, duration_ms: 2, error: null, response_body: 'no' };

/** The tests of every store: the one in PostgreSQL, and the one in memory that the simulation uses. */
export function describeDeliveryStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let under: StoreUnderTest;
    let store: DeliveryStore;
    let seq = 0;

    beforeAll(async () => {
      under = await open();
      ({ store } = under);
    });
    afterAll(() => under.close());

    const owner = newId('user');
    const webhook = async (rateLimit?: number): Promise<WebhookId> => {
      const id = newId('webhook');
      await under.addWebhook(id, owner, rateLimit);
      return id;
    };
    const delivery = (webhookId: WebhookId): Delivery => {
      seq += 1;
      const json = Buffer.from(JSON.stringify({ seq }));
      return { webhookId, place: { ms: 1000, seq }, emitterId: 'dc_1', stream: '', emitId: `emit-${seq}`, json, time: undefined };
    };
    const failed = (each: Delivery, pauseMs: number | null) => ({
      delivery: each,
      delivered: false as const,
      attempts: [ATTEMPT],
      tries: 1,
      pauseMs,
    });
    const delivered = (each: Delivery) => ({ delivery: each, delivered: true as const, attempts: [ATTEMPT] });
    const modeOf = async (id: WebhookId) => (await store.findTargets([id]))[0]?.mode;
    const receiverOf = async (id: WebhookId) => (await store.findTargets([id]))[0]!;
    /** Other tests leave backlogs behind: the one that is meant. */
    const claim = async (id: WebhookId): Promise<Claim | undefined> =>
      (await store.claim(1000, `lease-${(seq += 1)}`, LONG, UNSHARED)).find(({ webhookId }) => webhookId === id);
    const claimed = async (id: WebhookId): Promise<Claim> => {
      const found = await claim(id);
      if (!found) throw new Error('nothing to claim');
      return found;
    };
    const taken = async (id: WebhookId, limit = 100) => (await store.take(id, limit)).parked.map((parked) => parked.delivery.place.seq);

    it('parks nothing unattempted of a webhook that is direct, or gone', async () => {
      const id = await webhook();
      expect(await store.parkFresh(id, [delivery(id)])).toBe('direct');
      expect(await taken(id)).toEqual([]);
      const nobody = newId('webhook');
      expect(await store.parkFresh(nobody, [delivery(nobody)])).toBe('gone');
      expect(await claim(id)).toBeUndefined();
    });

    it('takes what is fresh in order, whole, and once', async () => {
      const id = await webhook();
      await store.spill(id);
      const three = [delivery(id), { ...delivery(id), stream: 'x', time: '2026-01-01T00:00:00Z' }, delivery(id)];
      expect(await store.parkFresh(id, three)).toBe('spilled');
      await store.parkFresh(id, three);
      const { parked } = await store.take(id, 100);
      expect(parked).toEqual(
        three.map((each) => ({
          delivery: each,
          fresh: true,
          attempts: [],
          tries: 0,
          sinceFirstMs: 0,
          dueInMs: expect.any(Number),
          revision: expect.any(String),
          bytes: expect.any(Number),
        })),
      );
      expect(await taken(id, 2)).toEqual([three[0]?.place.seq, three[1]?.place.seq]);
    });

    it('takes as many as have these bytes together, at least one', async () => {
      const id = await webhook();
      await store.spill(id);
      const json = Buffer.alloc(10_000, '1');
      const large = [delivery(id), delivery(id), delivery(id)].map((each) => ({ ...each, json }));
      await store.parkFresh(id, large);
      const seqs = large.map(({ place }) => place.seq);
      const takenOf = async (bytes: number) => (await store.take(id, 100, { bytes })).parked.map((parked) => parked.delivery.place.seq);
      expect(await takenOf(1)).toEqual(seqs.slice(0, 1));
      expect(await takenOf(20_000)).toEqual(seqs.slice(0, 1));
      expect(await takenOf(30_000)).toEqual(seqs.slice(0, 2));
      expect(await takenOf(100_000)).toEqual(seqs);
    });

    it('counts the attributes of the producer and the responses of the receiver among the bytes of a delivery', async () => {
      const [id, other] = [await webhook(), await webhook()];
      const context = { attributes: Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`attribute${n}`, 'v'.repeat(120)])) };
      const attempts = Array.from({ length: 3 }, () => ({ ...ATTEMPT, response_body: '\ufffd'.repeat(1024) }));
      const heavy = Array.from({ length: 3 }, () => ({ ...failed({ ...delivery(id), context }, 0), attempts }));
      for (const each of heavy) await store.parkFailed(each);
      await store.parkFailed(failed(delivery(other), 0));
      const bytesOf = async (each: WebhookId) => (await store.take(each, 1)).parked[0]!.bytes;
      const bytes = await bytesOf(id);
      // as strings of two bytes per character
      expect(bytes).toBeGreaterThan(2 * 60 * 120 + 3 * 2048);
      expect(await bytesOf(other)).toBeLessThan(2000);
      expect((await store.take(id, 100, { bytes: 2.5 * bytes })).parked).toHaveLength(2);
      await store.openBreaker(await receiverOf(id), 0);
      expect((await store.takeProbe(id, 0)).parked[0]!.bytes).toBe(bytes);
    });

    it('knows when the next backlog is due: at its time, or when its lease ends', async () => {
      const id = await webhook();
      // leases what other tests have left
      await claim(id);
      expect((await store.msToNext()) ?? Infinity).toBeGreaterThan(1000);
      await store.parkFailed(failed(delivery(id), 500));
      const soon = await store.msToNext();
      expect(soon).toBeGreaterThan(0);
      expect(soon).toBeLessThanOrEqual(500);
      await store.spill(id);
      expect(await store.msToNext()).toBeLessThanOrEqual(0);
      await store.claim(1, 'short', 300, UNSHARED);
      const leased = await store.msToNext();
      expect(leased).toBeGreaterThan(0);
      expect(leased).toBeLessThanOrEqual(300);
    });

    it('changes its version with its mode', async () => {
      const id = await webhook();
      const versions: (number | undefined)[] = [];
      const look = async () => versions.push((await store.findTargets([id]))[0]?.version);
      await look();
      await store.spill(id);
      await look();
      await store.startClosing(await claimed(id), LONG);
      await look();
      await store.spill(id);
      await look();
      expect(await modeOf(id)).toBe('spilled');
      expect(versions).toEqual([1, 2, 3, 4]);
    });

    it('holds new deliveries up while it is closing, for a limited time', async () => {
      const id = await webhook();
      await store.spill(id);
      const own = await claimed(id);
      await store.startClosing(own, LONG);
      expect(await store.parkFresh(id, [delivery(id)])).toBe('closing');
      await store.startClosing(own, 0);
      expect(await store.parkFresh(id, [delivery(id)])).toBe('spilled');
    });

    it('is direct again when nothing fresh is left, and not before', async () => {
      const id = await webhook();
      await store.spill(id);
      const [one] = [delivery(id)];
      await store.parkFresh(id, [one]);
      const own = await claimed(id);
      expect(await store.finishClosing(own)).toBe('more');
      expect(await modeOf(id)).toBe('spilled');
      await store.settle(id, [delivered(one)]);
      expect(await store.finishClosing(own)).toBe('direct');
      expect(await modeOf(id)).toBe('direct');
      expect(await claim(id)).toBeUndefined();
      expect(await store.renew(own, LONG)).toBeUndefined();
    });

    it('keeps a webhook with a rate limit spilled, and wakes for what arrives', async () => {
      const id = await webhook(5);
      expect(await modeOf(id)).toBe('spilled');
      const one = delivery(id);
      await store.parkFresh(id, [one]);
      const own = await claimed(id);
      await store.settle(id, [delivered(one)]);
      expect(await store.finishClosing(own)).toBe('direct');
      expect(await modeOf(id)).toBe('spilled');
      expect(await claim(id)).toBeUndefined();
      await store.parkFresh(id, [delivery(id)]);
      expect(await claim(id)).toBeDefined();
    });

    it.each([
      ['when nothing is left', async (own: Claim) => expect(await store.finishClosing(own, 300)).toBe('direct')],
      ['until what is due next', (own: Claim) => store.release(own, { when: 'next due' }, 300)],
      ['for later', (own: Claim) => store.release(own, { when: 'later', inMs: 0 }, 300)],
    ])('is leased to nobody while it rests after its release %s, whatever arrives', async (_, release) => {
      const id = await webhook(5);
      await store.parkFailed(failed(delivery(id), 0));
      await release(await claimed(id));
      await store.parkFresh(id, [delivery(id)]);
      expect(await claim(id)).toBeUndefined();
      await new Promise((resolve) => setTimeout(resolve, 350));
      expect(await claim(id)).toBeDefined();
    });

    it('takes a failed delivery when it is due, and leaves its webhook direct', async () => {
      const id = await webhook();
      const [now, later] = [delivery(id), delivery(id)];
      await store.parkFailed(failed(later, LONG));
      expect(await claim(id)).toBeUndefined();
      await store.parkFailed(failed(now, 0));
      const own = await claimed(id);
      expect(await store.take(id, 10)).toEqual({
        parked: [
          {
            delivery: now,
            fresh: false,
            attempts: [ATTEMPT],
            tries: 1,
            sinceFirstMs: expect.any(Number),
            dueInMs: expect.any(Number),
            revision: expect.any(String),
            bytes: expect.any(Number),
          },
        ],
        inFlight: false,
      });
      expect(await modeOf(id)).toBe('direct');
      await store.settle(id, [failed(now, LONG)], own);
      await store.release(own, { when: 'next due' });
      expect(await claim(id)).toBeUndefined();
      await store.parkFailed(failed(delivery(id), 0));
      expect(await claim(id)).toBeDefined();
    });

    it('begins the retry schedule of a delivery with its first attempt, however long it was parked before', async () => {
      const id = await webhook();
      const one = delivery(id);
      await store.spill(id);
      await store.parkFresh(id, [one]);
      const own = await claimed(id);
      await new Promise((resolve) => setTimeout(resolve, 50));
      const start = Date.now();
      await store.settle(id, [failed(one, 0)], own);
      await store.settle(id, [failed(one, 0)], own);
      const { parked } = await store.take(id, 10);
      expect(parked).toMatchObject([{ sinceFirstMs: expect.any(Number) }]);
      expect(parked[0]?.sinceFirstMs).toBeLessThanOrEqual(Date.now() - start + 1);
    });

    it('leaves what is parked already as it is', async () => {
      const id = await webhook();
      const one = delivery(id);
      await store.parkFailed({ ...failed(one, 0), tries: 3 });
      await store.parkFailed(failed(one, LONG));
      expect((await store.take(id, 10)).parked.map(({ tries }) => tries)).toEqual([3]);
    });

    it('holds back what is behind a first attempt in flight: fresh deliveries of its emitter, until it has ended', async () => {
      const id = await webhook();
      const [slow, next, other, tried] = [delivery(id), delivery(id), { ...delivery(id), emitterId: 'dc_2' as const }, delivery(id)];
      await store.parkInFlight(slow, LONG);
      expect(await modeOf(id)).toBe('spilled');
      await store.parkFresh(id, [next]);
      const own = await claimed(id);
      expect(await store.take(id, 10)).toEqual({ parked: [], inFlight: true });
      expect(await store.finishClosing(own)).toBe('more');
      await store.release(own, { when: 'later', inMs: LONG });
      expect(await claim(id)).toBeUndefined();
      await store.parkFresh(id, [other]);
      await store.parkFailed(failed(tried, 0));
      expect(await taken(id)).toEqual([other.place.seq, tried.place.seq]);
      await store.settle(id, [delivered(slow), delivered(other), delivered(tried)]);
      await claimed(id);
      expect(await taken(id)).toEqual([next.place.seq]);
    });

    it('counts no failure of a drainer that has lost its lease', async () => {
      const id = await webhook();
      const [one, two] = [delivery(id), delivery(id)];
      await store.parkFailed({ ...failed(one, 0), tries: 3 });
      await store.parkFailed(failed(two, 0));
      const own = await claimed(id);
      await store.settle(id, [failed(one, LONG), delivered(two)], { leaseId: 'another' });
      expect((await store.take(id, 10)).parked.map(({ delivery, tries }) => [delivery, tries])).toEqual([[one, 3]]);
      await store.settle(id, [failed(one, LONG)], own);
      expect(await taken(id)).toEqual([]);
    });

    it('does not overwrite the attempts of a replica that has taken over with the late failure of a first attempt', async () => {
      const id = await webhook();
      const slow = delivery(id);
      await store.parkInFlight(slow, 0);
      await store.settle(id, [{ ...failed(slow, 0), attempts: [ATTEMPT, ATTEMPT, ATTEMPT], tries: 3 }], await claimed(id));
      await store.settle(id, [failed(slow, LONG)]);
      expect((await store.take(id, 10)).parked).toMatchObject([{ attempts: [ATTEMPT, ATTEMPT, ATTEMPT], tries: 3 }]);
    });

    /** Requests a delivery that is being attempted, stores the failure of that attempt, and returns the delivery if it is due. */
    const requestDuring = async (each: Delivery, outcome: { revision?: string; pauseMs: number | null; tries?: number }, own?: Claim) => {
      await under.retry(each.webhookId, owner, each.place);
      await store.settle(each.webhookId, [{ ...failed(each, outcome.pauseMs), attempts: [ATTEMPT, ATTEMPT], ...outcome }], own);
      return (await store.take(each.webhookId, 10)).parked[0];
    };

    it.each([LONG, null])(
      'keeps a delivery due that a user requests while it is attempted, if that attempt fails: pause %s',
      async (pauseMs) => {
        const id = await webhook();
        const one = delivery(id);
        await store.parkFailed({ ...failed(one, 0), tries: 3 });
        const own = await claimed(id);
        const { revision } = (await store.take(id, 1)).parked[0]!;
        const requested = await requestDuring(one, { revision, pauseMs, tries: 4 }, own);
        expect(requested).toMatchObject({ delivery: one, attempts: [ATTEMPT, ATTEMPT], tries: 3 });
        // the requested attempt
        await store.settle(id, [{ ...failed(one, LONG), revision: requested?.revision }], own);
        expect(await taken(id)).toEqual([]);
      },
    );

    it('reports and returns the failures after which deliveries are given up, and no others', async () => {
      const id = await webhook();
      const [requested, givenUp, late, first] = [delivery(id), delivery(id), delivery(id), delivery(id)];
      const reported: Failed[][] = [];
      const report: ReportOf = (failures) => void reported.push(failures);
      for (const each of [requested, givenUp, late]) await store.parkFailed(failed(each, 0), report);
      const own = await claimed(id);
      const { revision } = (await store.take(id, 1)).parked[0]!;
      await under.retry(id, owner, requested.place);
      const settlements = [{ ...failed(requested, null), revision }, failed(givenUp, null)];
      expect(await store.settle(id, settlements, { ...own, report })).toEqual([settlements[1]]);
      // without the lease, and of a delivery that is parked already
      expect(await store.settle(id, [failed(late, null)], { report })).toEqual([]);
      expect(await store.parkFailed(failed(late, null), report)).toEqual([]);
      expect(await store.parkFailed(failed(first, null), report)).toEqual([failed(first, null)]);
      expect(reported.filter((failures) => failures.length > 0)).toEqual([[settlements[1]], [failed(first, null)]]);
      expect(await taken(id)).toEqual([requested, late].map(({ place }) => place.seq));
    });

    it('keeps a delivery due that a user requests during its first attempt, in flight elsewhere or from the backlog', async () => {
      const id = await webhook();
      const [slow, fresh] = [delivery(id), delivery(id)];
      const revision = await store.parkInFlight(slow, LONG);
      expect(await store.parkInFlight(slow, LONG)).toBeUndefined();
      expect(await requestDuring(slow, { revision, pauseMs: LONG })).toMatchObject({ delivery: slow, fresh: false });
      await store.settle(id, [delivered(slow)]);
      await store.parkFresh(id, [fresh]);
      const own = await claimed(id);
      const first = (await store.take(id, 1)).parked[0]!;
      expect(await requestDuring(fresh, { revision: first.revision, pauseMs: LONG }, own)).toMatchObject({ delivery: fresh, fresh: false });
      await store.openBreaker(await receiverOf(id), 0);
      await store.parkFresh(id, [delivery(id)]);
      expect((await store.takeProbe(id, 0)).parked).toMatchObject([{ delivery: fresh }]);
    });

    it('keeps the retry schedule of a delivery that a user requests during a probe', async () => {
      const id = await webhook();
      const one = delivery(id);
      await store.parkFailed(failed(one, LONG));
      await store.openBreaker(await receiverOf(id), 0);
      const own = await claimed(id);
      const { revision } = (await store.takeProbe(id, 0)).parked[0]!;
      const requested = await requestDuring(one, { revision, pauseMs: LONG }, own);
      expect(requested?.dueInMs).toBeGreaterThan(LONG / 2);
    });

    it('keeps a delivery given up that a user requests during an attempt, if its webhook is disabled then', async () => {
      const id = await webhook();
      const one = delivery(id);
      await store.parkFailed(failed(one, 0));
      const own = await claimed(id);
      const { revision } = (await store.take(id, 1)).parked[0]!;
      await under.retry(id, owner, one.place);
      await store.disable(await receiverOf(id), []);
      while (await store.giveUp(id));
      await store.settle(id, [{ ...failed(one, 0), revision }], own);
      expect(await taken(id)).toEqual([]);
    });

    it('counts the failure of a first attempt once, although it is stored twice', async () => {
      const id = await webhook();
      await store.spill(id);
      const one = delivery(id);
      await store.parkFresh(id, [one]);
      const own = await claimed(id);
      const { revision } = (await store.take(id, 1)).parked[0]!;
      for (let n = 0; n < 2; n++) await store.settle(id, [{ ...failed(one, LONG), revision }], own);
      expect(await taken(id)).toEqual([]);
    });

    it('takes up an attempt that nobody ended', async () => {
      const id = await webhook();
      const lost = delivery(id);
      await store.parkInFlight(lost, 0);
      expect(await taken(id)).toEqual([lost.place.seq]);
    });

    it('probes an open breaker with what is fresh, then with what is due, then with each delivery in turn', async () => {
      const id = await webhook();
      const [tried, fresh] = [delivery(id), delivery(id)];
      await store.parkFailed(failed(tried, LONG));
      await store.openBreaker(await receiverOf(id), 0);
      await store.parkFresh(id, [fresh]);
      const own = await claimed(id);
      expect(await store.renew(own, LONG)).toEqual({ failedProbes: 0, wakes: 0 });
      const probe = async (failedProbes: number) => {
        const { delivery, dueInMs } = (await store.takeProbe(id, failedProbes)).parked[0]!;
        return [delivery.place.seq, Math.max(0, Math.ceil(dueInMs / LONG))];
      };
      expect(await probe(0)).toEqual([fresh.place.seq, 0]);
      await store.settle(id, [failed(fresh, 2 * LONG)]);
      expect([await probe(0), await probe(1), await probe(2)]).toEqual([
        [tried.place.seq, 1],
        [fresh.place.seq, 2],
        [tried.place.seq, 1],
      ]);
      await store.settle(id, [failed(fresh, 0)], own);
      expect([await probe(0), await probe(1)]).toEqual([
        [fresh.place.seq, 0],
        [fresh.place.seq, 0],
      ]);
    });

    it('probes with no later delivery of an emitter whose first attempt is in flight', async () => {
      const id = await webhook();
      const [slow, next, other] = [delivery(id), delivery(id), { ...delivery(id), emitterId: 'dc_2' as const }];
      await store.parkInFlight(slow, LONG);
      await store.parkFresh(id, [next]);
      await store.openBreaker(await receiverOf(id), 0);
      expect(await store.takeProbe(id, 0)).toEqual({ parked: [], inFlight: true });
      await store.parkFresh(id, [other]);
      expect(await store.takeProbe(id, 0)).toMatchObject({ parked: [{ delivery: other }], inFlight: false });
      await store.settle(id, [delivered(slow), delivered(other)]);
      expect(await store.takeProbe(id, 0)).toMatchObject({ parked: [{ delivery: next }], inFlight: false });
    });

    it('is not woken by arrivals while its breaker is open', async () => {
      const id = await webhook();
      await store.openBreaker(await receiverOf(id), LONG);
      await store.parkFresh(id, [delivery(id)]);
      await store.parkFailed(failed(delivery(id), 0));
      await store.openBreaker(await receiverOf(id), 0);
      expect(await claim(id)).toBeUndefined();
    });

    it('keeps the time of the probe of another replica when its lease is released', async () => {
      const id = await webhook();
      await store.spill(id);
      const own = await claimed(id);
      await store.openBreaker(await receiverOf(id), LONG);
      await store.release(own, { when: 'unchanged' });
      expect(await claim(id)).toBeUndefined();
    });

    it('counts probes, and continues after a successful one', async () => {
      const id = await webhook();
      await store.openBreaker(await receiverOf(id), 0);
      await store.parkFresh(id, [delivery(id)]);
      await store.release(await claimed(id), { when: 'probe', inMs: 0, failedProbes: 7 });
      const own = await claimed(id);
      expect(await store.renew(own, LONG)).toEqual({ failedProbes: 7, wakes: 0 });
      expect(await store.finishClosing(own)).toBe('more');
      await store.closeBreaker(own);
      expect(await store.renew(own, LONG)).toEqual({ failedProbes: null, wakes: 0 });
    });

    it('is leased to one at a time, and to the next when the lease has ended', async () => {
      const id = await webhook();
      await store.spill(id);
      await store.parkFresh(id, [delivery(id)]);
      const first = await claimed(id);
      expect(await claim(id)).toBeUndefined();
      expect(await store.renew(first, 0)).toBeDefined();
      const second = await claimed(id);
      expect(await store.renew(first, LONG)).toBeUndefined();
      await store.release(first, { when: 'later', inMs: 0 });
      expect(await store.finishClosing(first)).toBe('more');
      expect(await store.renew(second, LONG)).toBeDefined();
    });

    it('is leased in turn with those of other accounts, however many are due for longer', async () => {
      const [first, other] = [newId('user'), newId('user')];
      // what other tests have left is not leased
      const rest: [UserId, number] = [owner, 1000];
      const due = async (ownerId: UserId): Promise<WebhookId> => {
        const id = newId('webhook');
        await under.addWebhook(id, ownerId);
        await store.spill(id);
        return id;
      };
      const own = [await due(first), await due(first), await due(first), await due(first), await due(first)];
      const others = [await due(other)];
      const claimedBy = async (limit: number, most: number, taken: [UserId, number][] = []) =>
        (await store.claim(limit, `lease-${(seq += 1)}`, LONG, { most, taken: new Map([rest, ...taken]) })).map(
          ({ webhookId, ownerId }) => {
            expect(ownerId).toBe(others.includes(webhookId) ? other : first);
            return webhookId;
          },
        );
      expect((await claimedBy(2, 10)).sort()).toEqual([own[0], others[0]].sort());
      others.push(await due(other));
      expect(await claimedBy(1, 10, [[first, 1]])).toEqual([others[1]]);
      others.push(await due(other));
      expect(await claimedBy(1, 10, [[other, 5]])).toEqual([own[1]]);
      expect((await claimedBy(10, 3, [[first, 1]])).sort()).toEqual([own[2], own[3], others[2]].sort());
      expect(await claimedBy(10, 3, [[first, 3]])).toEqual([]);
      expect(await claimedBy(10, 3)).toEqual([own[4]]);
    });

    it('gives up what is parked when the webhook is disabled', async () => {
      const id = await webhook();
      await store.parkFailed(failed(delivery(id), LONG));
      await store.parkFailed(failed(delivery(id), 0));
      expect(await store.disable(await receiverOf(id), [], LONG)).toBe(false);
      await store.markFailing(await receiverOf(id), LONG);
      expect(await store.disable(await receiverOf(id), [], LONG)).toBe(false);
      expect(await taken(id)).toHaveLength(1);
      expect(await store.disable(await receiverOf(id), [], -1000)).toBe(true);
      expect(await store.disable(await receiverOf(id), [])).toBe(false);
      const target = async () => (await store.findTargets([id]))[0];
      expect(await target()).toMatchObject({ active: false, giving_up: true });
      expect(await store.giveUp(id)).toBe(2);
      expect(await store.giveUp(id)).toBe(0);
      expect(await taken(id)).toEqual([]);
      expect(await target()).toMatchObject({ active: false, giving_up: false });
    });

    it('gives nothing up of a webhook that was switched on again', async () => {
      const id = await webhook();
      await store.parkFailed(failed(delivery(id), 0));
      await store.disable(await receiverOf(id), []);
      await under.activate(id, owner);
      expect(await store.giveUp(id)).toBe(0);
      expect(await taken(id)).toHaveLength(1);
    });

    it('parks what is fresh of a disabled webhook, and gives it up', async () => {
      const id = await webhook();
      await store.spill(id);
      await store.disable(await receiverOf(id), []);
      expect(await store.parkFresh(id, [delivery(id)])).toBe('spilled');
      expect(await store.giveUp(id)).toBe(1);
    });

    it('is neither disabled nor failing, and stays direct, whatever a receiver did that it had before', async () => {
      const id = await webhook();
      const former = { id, url: 'http://former.test/' };
      expect(await store.openBreaker(former, LONG)).toBe(false);
      expect(await modeOf(id)).toBe('direct');
      expect(await claim(id)).toBeUndefined();
      expect(await store.openBreaker(await receiverOf(id), LONG)).toBe(true);
      expect(await modeOf(id)).toBe('spilled');
      expect(await store.disable(former, [])).toBe(false);
      await store.markFailing(former, LONG);
      expect(await store.disable(await receiverOf(id), [], -1000)).toBe(false);
    });

    it('counts a receiver as failing from its first failure on, unless there was none for too long', async () => {
      const [failing, silent] = [await receiverOf(await webhook()), await receiverOf(await webhook())];
      const fail = async () => {
        await store.markFailing(failing, LONG);
        await store.markFailing(silent, 1000);
      };
      await fail();
      await new Promise((resolve) => setTimeout(resolve, 2100));
      await fail();
      expect(await store.disable(silent, [], 2000)).toBe(false);
      expect(await store.disable(failing, [], 2000)).toBe(true);
    });

    it('makes the backlog of a disabled webhook due, even if it is probed later', async () => {
      const id = await webhook();
      await store.openBreaker(await receiverOf(id), LONG);
      await store.disable(await receiverOf(id), []);
      await claimed(id);
    });

    it.each([
      { when: 'later', inMs: LONG },
      { when: 'probe', inMs: LONG, failedProbes: 3 },
      { when: 'unchanged' },
      { when: 'next due' },
    ] as const)('is due at once if its webhook was switched on after it was read, when it is released: $when', async (next) => {
      const id = await webhook();
      await store.parkFailed(failed(delivery(id), LONG));
      await store.openBreaker(await receiverOf(id), 0);
      const own = await claimed(id);
      await under.activate(id, owner);
      await store.release(own, next);
      expect(await store.renew(await claimed(id), LONG)).toMatchObject({ failedProbes: null });
    });

    it('is due later if its webhook was switched on before it was read again', async () => {
      const id = await webhook();
      await store.spill(id);
      const own = await claimed(id);
      await under.activate(id, owner);
      const renewed = await store.renew(own, LONG);
      await store.release({ ...own, ...renewed }, { when: 'later', inMs: LONG });
      expect(await claim(id)).toBeUndefined();
    });

    it('is due at once if its webhook was disabled while its last delivery ended', async () => {
      const id = await webhook();
      await store.spill(id);
      const own = await claimed(id);
      await store.disable(await receiverOf(id), []);
      expect(await store.finishClosing(own)).toBe('direct');
      await claimed(id);
    });

    it('takes no deliveries that are excepted, and no fresh ones of emitters that are held up', async () => {
      const id = await webhook();
      await store.spill(id);
      const [begun, behind, other] = [delivery(id), delivery(id), { ...delivery(id), emitterId: 'dc_2' as const }];
      const [tried, triedOf1] = [delivery(id), delivery(id)];
      await store.parkFresh(id, [begun, behind, other]);
      await store.parkFailed(failed(tried, 0));
      await store.parkFailed(failed(triedOf1, 0));
      const seqs = async (limit: number, emitters: EmitterId[]) => {
        const { parked } = await store.take(id, limit, { except: { places: [begun.place, tried.place], emitters } });
        return parked.map(({ delivery: { place } }) => place.seq);
      };
      expect(await seqs(10, [])).toEqual([behind, other, triedOf1].map(({ place }) => place.seq));
      expect(await seqs(1, [])).toEqual([behind.place.seq]);
      expect(await seqs(10, ['dc_1'])).toEqual([other, triedOf1].map(({ place }) => place.seq));
    });

    it('takes deliveries of other emitters behind thousands of one that is held up, in order', async () => {
      const id = await webhook();
      await store.spill(id);
      const of = (emitterId: EmitterId): Delivery => ({ ...delivery(id), emitterId });
      const slow = Array.from({ length: 2001 }, () => of('dc_1'));
      // the emitters are looked at in the order of their ids: the last one is beyond the limit
      const [first, other, second] = [of('dc_z'), of('dc_20000'), of('dc_z')];
      const others = Array.from({ length: 2000 }, (_, n) => of(`dc_${20_001 + n}`));
      await store.parkFresh(id, [...slow, first, other, second, ...others]);
      const { parked } = await store.take(id, 200, { except: { places: [slow[0]!.place], emitters: ['dc_1'] } });
      const taken = parked.map((each) => each.delivery);
      expect(taken).toHaveLength(200);
      expect(taken).toContainEqual(other);
      const inOrder = [first, second];
      const ofLast = taken.filter(({ emitterId }) => emitterId === 'dc_z');
      expect(ofLast).toEqual(inOrder.slice(0, ofLast.length));
    });

    it('finds the webhooks whose deliveries it would take', async () => {
      const [none, held, other, tried] = [await webhook(), await webhook(), await webhook(), await webhook()];
      const ids = [none, held, other, tried];
      for (const id of ids) await store.spill(id);
      const begun = ids.map(delivery);
      await store.parkFresh(held, [begun[1]!, delivery(held)]);
      await store.parkFresh(other, [begun[2]!, { ...delivery(other), emitterId: 'dc_2' }]);
      await store.parkFailed(failed(begun[3]!, 0));
      const find = async (places: EventPlace[], emitters: EmitterId[]) => {
        const found = await store.findTakeable(ids.map((webhookId) => ({ webhookId, except: { places, emitters } })));
        return ids.filter((id) => found.has(id));
      };
      const places = begun.map(({ place }) => place);
      expect(await find([], [])).toEqual([held, other, tried]);
      expect(await find(places, [])).toEqual([held, other]);
      expect(await find(places, ['dc_1'])).toEqual([other]);
      expect(await find(places, ['dc_1', 'dc_2'])).toEqual([]);
      await store.parkInFlight({ ...delivery(other), emitterId: 'dc_3' }, LONG);
      await store.parkFresh(other, [{ ...delivery(other), emitterId: 'dc_3' }]);
      expect(await find(places, ['dc_1', 'dc_2'])).toEqual([]);
      await store.parkFailed(failed(delivery(held), 0));
      expect(await find(places, ['dc_1', 'dc_2'])).toEqual([held]);
    });

    it('does not make a delivery due that was given up while it was attempted', async () => {
      const id = await webhook();
      const [slow, tried] = [delivery(id), delivery(id)];
      await store.parkInFlight(slow, LONG);
      await store.parkFailed(failed(tried, 0));
      await store.disable(await receiverOf(id), []);
      while (await store.giveUp(id));
      await store.settle(id, [failed(slow, 0)]);
      await store.settle(id, [failed(tried, 0)], await claimed(id));
      expect(await store.take(id, 10)).toEqual({ parked: [], inFlight: false });
    });
  });
}
