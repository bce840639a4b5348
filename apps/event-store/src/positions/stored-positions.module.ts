import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { EventProgress } from '../append/event-progress.entity.js';
import { StoredPositionsController } from './stored-positions.controller.js';
import { StoredPositionsRepository } from './stored-positions.repository.js';

@Module({
  imports: [TypeOrmModule.forFeature([EventProgress])],
  controllers: [StoredPositionsController],
  providers: [StoredPositionsRepository],
})
export class StoredPositionsModule {}
