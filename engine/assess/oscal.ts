import { createHash } from 'node:crypto'
import { uuidBytes, uuidText } from '../store/keys.ts'

/*
 * An assessment as an OSCAL assessment results document, which is written by oscal-export.ts and
 * read by oscal-import.ts:
 *
 *   OSCAL                                    assessment
 *   metadata: title, props                   title, framework, profile, template, categories
 *   local-definitions: objectives-and-methods one item each: texts, weight, priority, category,
 *                                            owner, due date, links and review
 *   result: start, end, props                times; state, score and grade
 *   result: reviewed-controls                all items
 *   result: findings                         one answered item each
 *   result: observations                     one note each
 *
 * OSCAL knows satisfied and not-satisfied only, so the exact answer is a property of the finding:
 *
 *   yes, 100, not_applicable   satisfied
 *   partial, no, 0 to 99       not-satisfied
 */
export const OSCAL_VERSION = '1.2.1'
/** Of all our properties. */
export const OSCAL_NAMESPACE = 'urn:security-posture-service:oscal'

const UUID_NAMESPACE = uuidBytes('6f0d9c9e-54d4-4f0e-9a51-5a5b4c0e2a17')
/** RFC 9562 section 4: the bytes with the version and with the variant. */
const VERSION_BYTE = 6
const VARIANT_BYTE = 8

/** A name-based UUID: RFC 9562 section 5.5, version 5. */
export function uuidOf(name: string): string {
  const hash = createHash('sha1').update(UUID_NAMESPACE).update(name).digest()
  hash.writeUInt8((hash.readUInt8(VERSION_BYTE) & 0x0f) | 0x50, VERSION_BYTE)
  hash.writeUInt8((hash.readUInt8(VARIANT_BYTE) & 0x3f) | 0x80, VARIANT_BYTE)
  return uuidText(hash)
}

/**
 * An item's id as an OSCAL token: a letter or `_`, then letters, digits, `.`, `-` and `_`. Controls
 * of NIST 800-53 have the ids of NIST's own catalog: AC-2(1) is `ac-2.1`. In other ids, `_` and two
 * hex digits replace a character that tokens cannot have: A(1) is `A_281_29`.
 */
export function controlIdOf(frameworkId: string, itemId: string): string {
  if (frameworkId === 'nist-800-53') {
    const [, control, enhancement] = /^([A-Za-z]{2}-\d+)(?:\((\d+)\))?$/.exec(itemId) ?? []
    if (control !== undefined) return `${control}${enhancement === undefined ? '' : `.${enhancement}`}`.toLowerCase()
  }
  const escaped = itemId.replace(/[^A-Za-z0-9.-]/g, (sign) => `_${sign.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return /^\d/.test(escaped) ? `_${escaped}` : escaped
}

/** NIST's catalogs name objectives so. */
const OBJECTIVE_SUFFIX = '_obj'

export function objectiveIdOf(controlId: string): string {
  return `${controlId}${OBJECTIVE_SUFFIX}`
}

/** The control of an objective or a statement: `ac-2_obj.a-1` and `ac-2_smt.a` belong to `ac-2`. */
export function controlOfTarget(targetId: string): string {
  return targetId.replace(/[_.](?:obj|smt)(?:[._-].*)?$/, '')
}

export interface Property {
  readonly name: string
  readonly ns: string
  readonly value: string
  readonly remarks?: string
}

/** OSCAL's values are one line. JavaScript's `.` excludes U+2028, which our lines may have. */
const ONE_LINE = /^\S(?:.*\S)?$/u
const IN_REMARKS = 'in remarks'

export function property(name: string, text: string): Property {
  const own = { name, ns: OSCAL_NAMESPACE }
  return ONE_LINE.test(text) ? { ...own, value: text } : { ...own, value: IN_REMARKS, remarks: text }
}

export interface GivenProperty {
  readonly name: string
  readonly ns?: string | undefined
  readonly value: string
  readonly remarks?: string | undefined
}

/** The texts of our properties with this name. */
export function propertyTexts(props: readonly GivenProperty[], name: string): string[] {
  return props
    .filter((each) => each.ns === OSCAL_NAMESPACE && each.name === name)
    .map(({ value, remarks }) => (value === IN_REMARKS && remarks !== undefined ? remarks : value))
}
