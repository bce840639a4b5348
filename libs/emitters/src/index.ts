export { EmitterChangeHandler, EmitterDirectory, updateCreation } from './directory.js';
export { EmittersModule } from './emitters.module.js';
export { Emitter, emittersSchema } from './emitter.entity.js';
