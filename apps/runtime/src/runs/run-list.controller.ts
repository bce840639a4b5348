import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  cursorOf,
  decodedCursor,
  type EventRun,
  FindRunOutcomes,
  findRunOutcomes,
  FindRuns,
  findRuns,
  type FinishedRun,
  Invalid,
  ListRuns,
  listRuns,
  type Page,
  pageOf,
  type RunOutcomes,
  type SourceId,
} from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
import { QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { finishedRunOf } from './run.entity.js';
import { attemptId } from '../retries/next-attempt.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { RuntimeConfig } from '../runtime.config.js';
import { type EndedRunRow, RunsRepository } from './runs.repository.js';

/** The last runs of a source, for its owner. */
@Controller()
export class RunListController {
  constructor(
    private readonly runs: RunsRepository,
    private readonly retried: RetriedRunsRepository,
    private readonly queue: QueuedRunsRepository,
    private readonly directory: EmitterDirectory,
    private readonly config: RuntimeConfig,
  ) {}

  @Handles(listRuns)
  async list(@Payload() { owner_id, source_id, limit, after, before }: ListRuns): Promise<Page<FinishedRun>> {
    const window = { limit, after: runIdOf('after', after), before: runIdOf('before', before) };
    await this.directory.requireOwned(owner_id, source_id);
    const { rows, total } = await this.runs.page(source_id, window);
    return pageOf(rows.map(finishedRunOf), total, ({ id }) => cursorOf(PREFIX + id));
  }

  @Handles(findRuns)
  async find(@Payload() { owner_id, run_key, replayed }: FindRuns): Promise<EventRun[]> {
    const firsts = [...(await this.runs.findOfEvent(owner_id, run_key)), ...replayed];
    if (firsts.length === 0) return [];
    const ids = firsts.map(({ run_id }) => run_id);
    const attempts = new Map(ids.map((id) => [id, [id, ...this.config.retrySchedule.map((_, index) => attemptId(id, index + 2))]]));
    const [ended, waiting, repeated] = await Promise.all([
      this.runs.findEnded(owner_id, [...attempts.values()].flat()),
      this.queue.waiting(ids),
      this.retried.pending(ids),
    ]);
    const rows = new Map(ended.map((row) => [row.id, row]));
    return firsts.flatMap(({ run_id: id, source_id }) => {
      const found = (attempts.get(id) ?? []).flatMap((each) => rows.get(each) ?? []);
      const isPending = repeated.has(id) || (found.length === 0 && waiting.has(id));
      return found.length === 0 && !isPending ? [] : [eventRun(source_id, found, isPending)];
    });
  }

  @Handles(findRunOutcomes)
  async outcomes(@Payload() { owner_id, source_id, run_ids }: FindRunOutcomes): Promise<RunOutcomes> {
    const [ended, queued, others_wait] = await Promise.all([
      this.runs.findEnded(owner_id, run_ids),
      this.queue.waiting(run_ids),
      this.queue.hasOthers(source_id, run_ids),
    ]);
    const byResult = Map.groupBy(ended, ({ listed }) => (listed?.status ?? 'succeeded') === 'succeeded');
    const [succeeded = [], failed = []] = [true, false].map((result) => byResult.get(result)?.map(({ id }) => id));
    return { succeeded, failed, queued: [...queued], others_wait };
  }
}

/** @param attempts that have ended, oldest first */
function eventRun(source_id: SourceId, attempts: EndedRunRow[], isPending: boolean): EventRun {
  const last = attempts.at(-1);
  return {
    source_id,
    last_id: last?.id ?? null,
    status: isPending ? 'pending' : (last?.listed?.status ?? null),
    attempts: attempts.flatMap(({ listed }) => (listed && listed.status !== 'skipped' ? [attemptOf(listed)] : [])),
  };
}

function attemptOf({ started_at, duration_ms, error }: NonNullable<EndedRunRow['listed']>): EventRun['attempts'][number] {
  const { name, message } = (JSON.parse(error ?? 'null') ?? {}) as { name?: string; message?: string };
  return {
    ts: started_at.getTime(),
    status_code: null,
    duration_ms,
    error: error === null ? null : `${name}: ${message}`,
    response_body: null,
  };
}

/** A cursor contains the run's id, not its position: positions count the runs of all accounts. */
const PREFIX = 'run_';

/** The run of a cursor; an empty cursor counts as absent. Throws Invalid if the text is not a cursor of this list. */
function runIdOf(field: 'after' | 'before', cursor: string | undefined): string | undefined {
  if (cursor === undefined || cursor === '') return undefined;
  const runId = /^run_([\x21-\x7e]{1,256})$/.exec(decodedCursor(cursor) ?? '')?.[1];
  if (runId === undefined) throw new Invalid([{ field, message: `${field} is not a cursor of this list` }]);
  return runId;
}
