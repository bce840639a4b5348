import { Global, Module } from '@nestjs/common';
import { GatewayConfig } from './gateway.config.js';

/** One instance of the configuration for all modules of the gateway. */
@Global()
@Module({ providers: [{ provide: GatewayConfig, useFactory: () => GatewayConfig.read() }], exports: [GatewayConfig] })
export class GatewayConfigModule {}
