import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { type EndedRun, FindRuns, findRuns, type FinishedRun, Invalid, ListRuns, listRuns, NotFound, type Page, pageOf } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
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
    private readonly directory: EmitterDirectory,
    private readonly config: RuntimeConfig,
  ) {}

  @Handles(listRuns)
  async list(@Payload() { owner_id, source_id, limit, after, before }: ListRuns): Promise<Page<FinishedRun>> {
    const window = { limit, after: positionOf('after', after), before: positionOf('before', before) };
    if (!(await this.directory.findOwned(owner_id, source_id))) throw new NotFound('source', source_id);
    const { rows, total } = await this.runs.page(source_id, window);
    const cursors = new Map(rows.map((row) => [row, cursorOf(row.position)]));
    const { page_info } = pageOf(rows, total, (row) => cursors.get(row) ?? '');
    return { page_info, data: rows.map(finishedRunOf) };
  }

  @Handles(findRuns)
  async find(@Payload() { owner_id, run_ids }: FindRuns): Promise<EndedRun[]> {
    const attempts = new Map(run_ids.map((id) => [id, [id, ...this.config.retrySchedule.map((_, index) => attemptId(id, index + 2))]]));
    const [ended, pending] = await Promise.all([
      this.runs.findEnded(owner_id, [...attempts.values()].flat()),
      this.retried.pending(run_ids),
    ]);
    const rows = new Map(ended.map((row) => [row.id, row]));
    return [...attempts].flatMap(([id, ids]) => {
      const found = ids.flatMap((each) => rows.get(each) ?? []);
      return found.length === 0 ? [] : [endedRun(id, found, pending.has(id))];
    });
  }
}

/** @param attempts that have ended, oldest first; at least one */
function endedRun(id: string, attempts: EndedRunRow[], isPending: boolean): EndedRun {
  const last = attempts.at(-1)!;
  return {
    id,
    last_id: last.id,
    status: isPending ? 'pending' : (last.listed?.status ?? null),
    attempts: attempts.flatMap(({ listed }) => (listed && listed.status !== 'skipped' ? [attemptOf(listed)] : [])),
  };
}

function attemptOf({ started_at, duration_ms, error }: NonNullable<EndedRunRow['listed']>): EndedRun['attempts'][number] {
  const { name, message } = (JSON.parse(error ?? 'null') ?? {}) as { name?: string; message?: string };
  return {
    ts: started_at.getTime(),
    status_code: null,
    duration_ms,
    error: error === null ? null : `${name}: ${message}`,
    response_body: null,
  };
}

const PREFIX = 'run_';

const cursorOf = (position: number): string => Buffer.from(`${PREFIX}${position}`).toString('base64url');

/** The position in a cursor; an empty cursor counts as absent. Throws Invalid if the text is not a cursor of this list. */
function positionOf(field: 'after' | 'before', cursor: string | undefined): number | undefined {
  if (cursor === undefined || cursor === '') return undefined;
  const position = /^run_(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('utf8'))?.[1];
  if (position === undefined || cursorOf(Number(position)) !== cursor)
    throw new Invalid([{ field, message: `${field} is not a cursor of this list` }]);
  return Number(position);
}
