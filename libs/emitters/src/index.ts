export { type Emitter, EMITTER_LISTENER, EmitterDirectory, type EmitterListener } from './directory.js';
export { EmittersModule } from './emitters.module.js';
