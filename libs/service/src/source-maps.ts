import { setSourceMapsSupport } from 'node:module';

// Loaded by `--import`, because Node stores the map of a module when it loads the module. Unlike --enable-source-maps, it leaves out packages, as the
// bundles of the apps do: their maps occupy 10 MB of each process, and only show where in its sources a package has thrown an error.
setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });
