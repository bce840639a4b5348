import { runService } from '#service';
import { settings } from './catalog.config.js';
import { CatalogModule } from './catalog.module.js';

await runService({ name: 'catalog', module: CatalogModule, settings });
