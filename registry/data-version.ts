import { z } from 'zod'

/**
 * The version of the registry's data: the day of the release, and a number from 2 on if the day has
 * more than one: 2026.11.23, 2026.11.23.2.
 */
const FORM = /^\d{4}\.\d{2}\.\d{2}(?:\.(?:[2-9]|[1-9]\d{1,2}))?$/

export const dataVersion = z
  .string()
  .regex(FORM, 'must be a version such as 2026.11.23')
  .refine((text) => z.iso.date().safeParse(dayOfVersion(text)).success, 'must begin with a day')

/** The day of a version: 2026-11-23. */
export function dayOfVersion(version: string): string {
  return version.slice(0, 10).replaceAll('.', '-')
}

/** Negative if `a` is older than `b`, 0 if they are equal. */
export function compareVersions(a: string, b: string): number {
  const [dayOfA, dayOfB] = [dayOfVersion(a), dayOfVersion(b)]
  if (dayOfA !== dayOfB) return dayOfA < dayOfB ? -1 : 1
  return numberOf(a) - numberOf(b)
}

function numberOf(version: string): number {
  return Number(version.split('.')[3] ?? 1)
}
