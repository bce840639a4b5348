export { EMITTER_LISTENER, EmitterDirectory, type EmitterListener, updateCreation } from './directory.js';
export { EmittersModule } from './emitters.module.js';
export { Emitter, emittersSchema } from './emitter.entity.js';
