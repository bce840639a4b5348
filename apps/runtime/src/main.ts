import { runService } from '#service';
import { EndpointsServer } from './endpoints/endpoints.server.js';
import { settings } from './runtime.config.js';
import { RuntimeModule } from './runtime.module.js';
import { schema } from './database/schema.js';

await runService({
  name: 'runtime',
  module: RuntimeModule,
  schema,
  settings,
  letClientsLeave: (app) => app.get(EndpointsServer, { strict: false }).letClientsLeave(),
});
