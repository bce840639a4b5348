import { Module } from '@nestjs/common';
import { StoredPositionsController } from './stored-positions.controller.js';
import { StoredPositionsRepository } from './stored-positions.repository.js';

@Module({ controllers: [StoredPositionsController], providers: [StoredPositionsRepository] })
export class StoredPositionsModule {}
