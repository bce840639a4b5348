import { Controller } from '@nestjs/common';
import { getStoredPositions, type StoredPosition } from '#contracts';
import { Handles } from '#messaging';
import { StoredPositionsRepository } from './stored-positions.repository.js';

/** Returns the positions up to which the topic is stored. A live stream begins there, and gets earlier events from this store. */
@Controller()
export class StoredPositionsController {
  constructor(private readonly positions: StoredPositionsRepository) {}

  @Handles(getStoredPositions)
  list(): Promise<StoredPosition[]> {
    return this.positions.list();
  }
}
