import { beforeEach, describe, expect, it } from '@jest/globals';
import { emitterChanged, type EmitterState } from '#contracts';
import { type LogReader, LogRecord } from '#messaging';
import { createLog } from '#observability';
import type { DatabaseRestores } from '#service';
import type { SourcesRepository } from '../sources/sources.repository.js';
import type { WorkflowsRepository } from '../workflows/workflows.repository.js';
import { Reconciliation } from './reconciliation.js';
import type { RestoresRepository } from './restores.repository.js';

const state = (emitter_id: EmitterState['emitter_id'], version: number, more: Partial<EmitterState> = {}): EmitterState => ({
  ...{ emitter_id, version, kind: emitter_id.startsWith('p_') ? 'workflow' : 'source', owner_id: 'u_000000000000000001' },
  ...{ active: true, deleted: false, name: 'n', created_at_ms: 5, ...more },
});

describe('after a restore of its database, the catalog', () => {
  let topic: (EmitterState | string)[];
  /** The versions in the database. */
  let rows: Record<string, number>;
  let overruled: { sources: EmitterState[]; workflows: EmitterState[] };
  let pending: string[];
  let failures: number;
  let restored: () => Promise<void>;
  let reconciliation: Reconciliation;

  beforeEach(() => {
    [topic, rows, pending, failures] = [[], {}, [], 0];
    overruled = { sources: [], workflows: [] };
    const reader = {
      bounds: async () => new Map([[0, { from: 0, to: topic.length }]]),
      read: async (...[, , , take]: Parameters<LogReader['read']>) => {
        if (failures-- > 0) throw new Error('the brokers are down');
        for (const [offset, value] of topic.entries()) {
          const message = { key: null, value: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), headers: {} };
          await take(0, [new LogRecord(emitterChanged.topic, 0, { ...message, offset: String(offset), timestamp: '0', attributes: 0 }, 0)]);
        }
      },
    };
    const versions = async (ids: string[]) => new Map(ids.filter((id) => id in rows).map((id) => [id, rows[id]!]));
    const sources = {
      versions,
      overrule: async (states: EmitterState[]) => {
        overruled.sources.push(...states);
        return { published: states.length, deleted: 0 };
      },
    };
    const workflows = { versions, overrule: async (states: EmitterState[]) => overruled.workflows.push(...states) };
    const restores = {
      add: async () => void pending.push(String(pending.length)),
      ids: async () => pending,
      remove: async (ids: string[]) => void (pending = pending.filter((id) => !ids.includes(id))),
    };
    reconciliation = new Reconciliation(
      { onRestored: (listener: () => Promise<void>) => void (restored = listener) } as unknown as DatabaseRestores,
      restores as unknown as RestoresRepository,
      reader as unknown as LogReader,
      sources as unknown as SourcesRepository,
      workflows as unknown as WorkflowsRepository,
      createLog('test', 'silent'),
    );
    reconciliation.onModuleInit();
  });

  it('overrules the states in the topic that are newer than its own, and those of emitters that it does not have', async () => {
    rows = { dc_same: 1, dc_changed: 1, dc_later: 9, p_same: 2, p_changed: 2 };
    topic = [
      ...[state('dc_changed', 2), state('dc_same', 1), state('p_same', 2), state('dc_orphan', 3)],
      ...['not JSON', '{"emitter_id":"dc_invalid"}'],
      ...[state('dc_changed', 4), state('dc_changed', 3), state('dc_later', 4), state('p_changed', 4), state('dc_orphan', 5)],
    ];
    expect(await reconciliation.reconcile()).toEqual({ published: 3, deleted: 0 });
    expect(overruled).toMatchObject({
      sources: [state('dc_changed', 4), state('dc_orphan', 5)],
      workflows: [{ ...state('p_changed', 4), name: '' }],
    });
  });

  it('keeps no states of emitters that are deleted in the topic, too', async () => {
    rows = { dc_restored: 1 };
    topic = [
      ...[state('dc_1', 1), state('dc_1', 2, { deleted: true }), state('dc_2', 2, { deleted: true }), state('p_1', 1, { deleted: true })],
      ...[state('dc_restored', 2, { deleted: true }), state('dc_orphan', 3)],
    ];
    await reconciliation.reconcile();
    expect(overruled).toEqual({ sources: [state('dc_restored', 2, { deleted: true }), state('dc_orphan', 3)], workflows: [] });
  });

  it('leaves no secrets of sources that do not exist', async () => {
    const deployment = { code_hash: 'h', configured_props: 'planted', credentials: { cn_1: 'planted' }, schedules: {} };
    topic = [state('dc_1', 1, { deployment: { ...deployment, endpoint_key: null, name_slug: 'n' } })];
    await reconciliation.reconcile();
    expect(JSON.stringify(overruled)).not.toContain('planted');
  });

  const reconciled = async () => {
    while (pending.length > 0) await new Promise((resolve) => setImmediate(resolve));
  };

  it('notes the restore until its work is done', async () => {
    topic = [state('dc_1', 1)];
    failures = 1;
    await Promise.all([restored(), restored()]);
    expect(pending).toHaveLength(1);
    await reconciled();
    expect(overruled.sources).toEqual([state('dc_1', 1)]);
  });

  it('finishes the work of a process that crashed', async () => {
    topic = [state('dc_1', 1)];
    pending = ['1'];
    reconciliation.onApplicationBootstrap();
    await reconciled();
    expect(overruled.sources).toEqual([state('dc_1', 1)]);
  });
});
