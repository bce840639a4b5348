export { EmitterDirectory, type EmitterListener, updateCreation } from './directory.js';
export { Emitter } from './emitter.entity.js';
export { EmittersModule } from './emitters.module.js';
export { emittersSchema } from './emitters.schema.js';
