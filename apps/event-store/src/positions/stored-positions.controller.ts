import { Controller } from '@nestjs/common';
import { getStoredPositions, type StoredPosition } from '#contracts';
import { Answers } from '#messaging';
import { StoredPositionsRepository } from './stored-positions.repository.js';

/** Tells how far the log is stored: where a live stream of the same log begins, and when what it begins with can be read here. */
@Controller()
export class StoredPositionsController {
  constructor(private readonly positions: StoredPositionsRepository) {}

  @Answers(getStoredPositions)
  list(): Promise<StoredPosition[]> {
    return this.positions.list();
  }
}
