/** Files of PyTorch are only read: a pickle is a program, and safetensors holds the same tensors. */
import { refuseWriting } from '../write_checks.js'
import { FORMAT_NAME } from './schema.js'

export const plan = refuseWriting(FORMAT_NAME, 'save the tensors as safetensors')
