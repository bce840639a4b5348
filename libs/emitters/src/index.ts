export { type EmitterChange, EmitterChangeHandler, EmitterDirectory, isUncertain, updateCreation } from './directory.js';
export { Emitter, emittersSchema } from './emitter.entity.js';
export { EmittersModule } from './emitters.module.js';
