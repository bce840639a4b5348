import type { Server } from 'node:http';
import { HttpAdapterHost } from '@nestjs/core';
import { letClientsLeave } from '#http-server';
import { runService, ServiceConfig } from '#service';
import { schema } from './database/schema.js';
import { GatewayConfig, settings } from './gateway.config.js';
import { GatewayModule } from './gateway.module.js';
import { createHttpApp } from './create-http-app.js';

await runService({
  name: 'gateway',
  module: GatewayModule,
  schema,
  settings,
  http: {
    create: createHttpApp,
    listen: async (app) => {
      const config = app.get(GatewayConfig);
      // not Nest's own `listen`, which also logs the error that it throws
      await app.getHttpAdapter().getInstance().listen({ port: config.port, host: config.host });
    },
  },
  letClientsLeave: (app) =>
    letClientsLeave(app.get(HttpAdapterHost).httpAdapter.getHttpServer() as Server, ServiceConfig.read().shutdownDelayMs),
});
