import { Module } from '@nestjs/common';
import { WithdrawnEmitsController } from './withdrawn-emits.controller.js';
import { WithdrawnEmitsRepository } from './withdrawn-emits.repository.js';

@Module({ controllers: [WithdrawnEmitsController], providers: [WithdrawnEmitsRepository] })
export class WithdrawnEmitsModule {}
