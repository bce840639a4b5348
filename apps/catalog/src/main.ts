import { runService } from '#service';
import { CatalogModule } from './catalog.module.js';

await runService({ name: 'catalog', module: CatalogModule });
