import { runService } from '#service';
import { settings } from './catalog.config.js';
import { CatalogModule } from './catalog.module.js';
import { schema } from './database/schema.js';

await runService({ name: 'catalog', module: CatalogModule, schema, settings });
