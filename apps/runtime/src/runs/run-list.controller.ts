import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { FindRuns, findRuns, type FinishedRun, Invalid, ListRuns, listRuns, NotFound, type Page, pageOf } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
import { finishedRunOf } from './finished-run.entity.js';
import { RunsRepository } from './runs.repository.js';

/** The last runs of a source, for its owner. */
@Controller()
export class RunListController {
  constructor(
    private readonly runs: RunsRepository,
    private readonly directory: EmitterDirectory,
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
  find(@Payload() { owner_id, run_ids }: FindRuns): Promise<{ id: string; status: FinishedRun['status'] | null }[]> {
    return this.runs.findEnded(owner_id, run_ids);
  }
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
