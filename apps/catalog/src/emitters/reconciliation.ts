import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { emitterChanged, EmitterState } from '#contracts';
import { LogReader, type LogRecord, payloadOf } from '#messaging';
import { LOG, type Log } from '#observability';
import { DatabaseRestores } from '#service';
import { SourcesRepository } from '../sources/sources.repository.js';
import { WorkflowsRepository } from '../workflows/workflows.repository.js';
import { RestoresRepository } from './restores.repository.js';

const RETRY_MS = 1000;
/** The topic has at least one state of each emitter that has existed since Kafka last lost its data. */
const READ_WITHIN_MS = 600_000;
/** Emitters whose states are published in one transaction. */
const PUBLISHED_TOGETHER = 100;

/**
 * After a restore of the catalog's database, the topic of emitters and the services that follow it have states that the database has lost. The database is
 * right. The topic is compared with it, and what differs is published under a version that is newer than all others:
 *
 *   the topic has a newer state than the row ──► the state of the row
 *   the topic has a source without a row ──► its deletion
 *
 * A second comparison finds no difference, so replicas may do this at the same time, and a crash is followed by another attempt.
 */
@Injectable()
export class Reconciliation implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private noting: Promise<void> | undefined;
  private work: Promise<void> = Promise.resolve();
  private stopping = false;

  constructor(
    private readonly restores: DatabaseRestores,
    private readonly pending: RestoresRepository,
    private readonly reader: LogReader,
    private readonly sources: SourcesRepository,
    private readonly workflows: WorkflowsRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onModuleInit(): void {
    // each consumer group recognises the restore
    this.restores.onRestored(() => (this.noting ??= this.note().finally(() => (this.noting = undefined))));
  }

  /** A process may have ended in the middle. */
  onApplicationBootstrap(): void {
    this.start();
  }

  onApplicationShutdown(): void {
    this.stopping = true;
  }

  /** Resolves when the restore is noted in the database. */
  private async note(): Promise<void> {
    await this.pending.add();
    this.start();
  }

  private start(): void {
    this.work = this.work.then(() => this.reconcilePending());
  }

  private async reconcilePending(): Promise<void> {
    while (!this.stopping) {
      try {
        const ids = await this.pending.ids();
        if (ids.length === 0) return;
        const counts = await this.reconcile();
        await this.pending.remove(ids);
        return this.log.warn(counts, 'emitters.reconciled');
      } catch (error) {
        if (!this.stopping) this.log.error({ reason: (error as Error).message }, 'emitters.not-reconciled');
        await sleep(RETRY_MS, undefined, { ref: false });
      }
    }
  }

  /** Returns how many emitters have been published, and how many of them as deleted. */
  async reconcile(): Promise<{ published: number; deleted: number }> {
    const lost = [...(await this.lostStates()).values()];
    let [published, deleted] = [0, 0];
    for (let from = 0; from < lost.length; from += PUBLISHED_TOGETHER) {
      const states = lost.slice(from, from + PUBLISHED_TOGETHER);
      const sources = await this.sources.overrule(states.filter(({ kind }) => kind === 'source'));
      // one without a row is read from the topic of workflows again, whose positions the restore has set back, too
      published += sources.published + (await this.workflows.overrule(states.filter(({ kind }) => kind === 'workflow')));
      deleted += sources.deleted;
    }
    return { published, deleted };
  }

  /** The newest states in the topic of those emitters of which the database has an older state or none. */
  private async lostStates(): Promise<Map<string, EmitterState>> {
    const lost = new Map<string, EmitterState>();
    const { topic } = emitterChanged;
    const take = async (_: number, records: LogRecord[]): Promise<boolean> => {
      const states = await statesOf(records);
      const ids = [...new Set(states.map(({ emitter_id }) => emitter_id as string))];
      const versions = new Map([...(await this.sources.versions(ids)), ...(await this.workflows.versions(ids))]);
      for (const state of states) {
        const { emitter_id, version } = state;
        const stored = versions.get(emitter_id);
        const known = Math.max(stored ?? -1, lost.get(emitter_id)?.version ?? -1);
        if (version <= known) continue;
        // nothing to publish; those of all emitters that were ever deleted do not fit into memory
        if (state.deleted && stored === undefined) lost.delete(emitter_id);
        else lost.set(emitter_id, inShort(state));
      }
      return true;
    };
    await this.reader.read('catalog', topic, await this.reader.bounds(topic), take, { withinMs: READ_WITHIN_MS });
    return lost;
  }
}

/** The states in these records. The services that follow the topic set aside everything else. */
async function statesOf(records: LogRecord[]): Promise<EmitterState[]> {
  const states = await Promise.all(records.map((record) => payloadOf(EmitterState, record).catch(() => undefined)));
  return states.filter((state) => state !== undefined);
}

/** Without secrets, and without the name of a workflow: earlier versions published names of up to a megabyte. */
const inShort = ({ deployment, ...state }: EmitterState): EmitterState => ({
  ...state,
  ...(state.kind === 'workflow' && { name: '' }),
  ...(deployment && { deployment: { ...deployment, configured_props: {}, credentials: null } }),
});
