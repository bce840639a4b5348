import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Api } from './support/api.js';
import { CommandLine } from './support/command-line.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const KILLS = 5;
const EVENTS_PER_KILL = 40;
/** How long the machine sleeps, beyond the time in which the gateway starts again. */
const FREEZE_SECONDS = Number(process.env.SLUICE_TEST_FREEZE_SECONDS ?? 0);
/** Each time, the gateway must start again. */
const TIME_LIMIT_MS = 300_000 + FREEZE_SECONDS * 1000;

let system: System;
let receiver: Receiver;
let api: Api;
let producer: Awaited<ReturnType<typeof outsideProducer>>;
let cli: CommandLine;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  api = await system.account();
  [producer, cli] = await Promise.all([outsideProducer(system.brokers), CommandLine.of(api)]);
});
afterAll(async () => {
  cli?.close();
  await Promise.all([system?.stop(), receiver?.close(), producer?.close()]);
});

needing('control', 'receiver').it(
  'sluice listen posts every event once, in order, while the gateway is killed and the machine sleeps',
  async () => {
    const { id } = await api.source("export default { name: 'listened', run() {} };");
    const listening = cli.start(['listen', receiver.url, '--source', id]);
    await eventually(() => expect(listening.err()).toContain('ready'));
    let emitted = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      for (let n = 0; n < EVENTS_PER_KILL; n++) {
        await producer.emit(id, [{ n: emitted++ }]);
        if (n === EVENTS_PER_KILL / 2) await system.apps.kill('gateway');
      }
      // one at a time: Sluice keeps the last 100 events
      await eventually(() => expect(receiver.received).toHaveLength(emitted), { withinMs: 60_000 });
    }
    // a machine that sleeps: the process stands still while events are emitted and the connection breaks
    listening.child.kill('SIGSTOP');
    for (let n = 0; n < EVENTS_PER_KILL; n++) await producer.emit(id, [{ n: emitted++ }]);
    await system.apps.kill('gateway');
    await system.apps.whenReady('gateway');
    await sleep(FREEZE_SECONDS * 1000);
    listening.child.kill('SIGCONT');
    await eventually(() => expect(receiver.received).toHaveLength(emitted), { withinMs: 60_000 });
    expect(receiver.received.map(({ body }) => body.n as number)).toEqual(Array.from({ length: emitted }, (_, n) => n));
    expect(listening.err()).toContain('not connected');
    expect(listening.err()).toContain('connected again');
  },
  TIME_LIMIT_MS,
);
