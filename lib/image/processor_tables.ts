/**
 * What a byte becomes in a processor: the roundings of each backend, in float32 one after the other, which formulas in float64
 * or with a fused multiply-add do not give to the last bit.
 */
import { TileworkError } from '../errors.js'
import type { ProcessorConfig } from './processor_config.js'

const { fround } = Math

export type ByteRules = Pick<ProcessorConfig, 'backend' | 'rescale' | 'normal'>

/** @returns float32 values of the 256 bytes for each channel; undefined where bytes stay bytes */
export function valuesOfBytes(rules: ByteRules, channels: number): readonly Float32Array[] | undefined {
  const { rescale, normal } = rules
  if (rescale === undefined && normal === undefined) return undefined
  return Array.from({ length: channels }, (_, channel) => {
    const toNumber = rules.backend === 'pil' ? pillowValue(rules, channel) : torchvisionValue(rules, channel)
    return Float32Array.from({ length: 256 }, (_, byte) => toNumber(byte))
  })
}

/** The number of a channel; one number is for all. @throws TileworkError ERR_ARGUMENT for another count than channels */
export function checkChannelNumbers({ normal }: ByteRules, channels: number, name: string): void {
  for (const [what, numbers] of Object.entries(normal ?? {})) {
    if (numbers.length === 1 || numbers.length === channels) continue
    const message = `${name} has ${channels} channels; image_${what} of the image processor has ${numbers.length} numbers.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
}

function numberOf(numbers: readonly number[], channel: number): number {
  return fround(numbers.length === 1 ? numbers[0]! : numbers[channel]!)
}

function pillowValue({ rescale, normal }: ByteRules, channel: number): (byte: number) => number {
  const scaled = (byte: number): number => (rescale === undefined ? byte : fround(byte * rescale))
  if (normal === undefined) return scaled
  const mean = numberOf(normal.mean, channel)
  const std = numberOf(normal.std, channel)
  return (byte) => fround(fround(scaled(byte) - mean) / std)
}

/** The scale is part of mean and std there. */
function torchvisionValue({ rescale, normal }: ByteRules, channel: number): (byte: number) => number {
  if (normal === undefined) return (byte) => fround(byte * fround(rescale!))
  const unit = rescale === undefined ? 1 : fround(1 / rescale)
  const mean = fround(numberOf(normal.mean, channel) * unit)
  const std = fround(numberOf(normal.std, channel) * unit)
  return (byte) => fround(fround(byte - mean) / std)
}
