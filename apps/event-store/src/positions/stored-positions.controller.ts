import { Controller } from '@nestjs/common';
import { getStoredPositions, type StoredPosition } from '#contracts';
import { Handles } from '#messaging';
import { StoredPositionsRepository } from './stored-positions.repository.js';

/** Returns how far the topic is stored: a live stream begins there, with the events before it from this store. */
@Controller()
export class StoredPositionsController {
  constructor(private readonly positions: StoredPositionsRepository) {}

  @Handles(getStoredPositions)
  list(): Promise<StoredPosition[]> {
    return this.positions.list();
  }
}
