import { isoSeconds } from '../kernel/process/clock.ts'
import {
  type Answer,
  type Assessment,
  type AssessmentCategory,
  type AssessmentItem,
  frameworkOf,
} from '../store/assessments.ts'
import { basisOf, type ScoreBasis } from './basis.ts'
import { controlIdOf, OSCAL_VERSION, objectiveIdOf, property, uuidOf } from './oscal.ts'
import { itemKey } from './rules.ts'
import { pointsOf } from './score.ts'
import { itemsOf } from './states.ts'
import { reviewText, workOf } from './work.ts'

/** Characters of the title of a finding. */
const TITLE_CHARACTERS_MAX = 120

/**
 * An assessment as OSCAL JSON. UUIDs derive from the assessment's id, so that each export of an
 * assessment has the same ones.
 */
export function writeAssessmentOscal(assessment: Assessment, categories: readonly AssessmentCategory[]): string {
  const { id, frameworkId, title, updatedAtMs } = assessment
  const planId = uuidOf(`${id}/plan`)
  const document = {
    'assessment-results': {
      uuid: uuidOf(id),
      metadata: {
        title,
        'last-modified': isoSeconds(updatedAtMs),
        version: isoSeconds(updatedAtMs),
        'oscal-version': OSCAL_VERSION,
        props: metadataProps(assessment, categories),
      },
      'import-ap': { href: `#${planId}` },
      'local-definitions': {
        'objectives-and-methods': categories.flatMap((category, at) =>
          category.items.map((item) => objectiveOf(frameworkId, item, at)),
        ),
      },
      results: [resultOf(assessment, categories)],
      'back-matter': {
        resources: [
          {
            uuid: planId,
            title: `Items of ${frameworkOf(assessment)}`,
            description: 'There is no separate assessment plan: local-definitions has the items.',
          },
        ],
      },
    },
  }
  return `${JSON.stringify(document, null, 1)}\n`
}

function metadataProps({ frameworkId, profile, template }: Assessment, categories: readonly AssessmentCategory[]) {
  return [
    property('framework-id', frameworkId),
    ...(template === undefined ? [] : [property('template', template)]),
    ...(profile ?? []).map((word) => property('profile', word)),
    ...categories.flatMap(({ name, weight }) => [
      property('category', name),
      property('category-weight', String(weight)),
    ]),
  ]
}

function basisProps({ notApplicablePercent, unsupported }: ScoreBasis) {
  return [
    property('not-applicable-percent', String(notApplicablePercent)),
    property('unsupported-answers', String(unsupported.length)),
  ]
}

/** @param at the index of its category */
function objectiveOf(frameworkId: string, item: AssessmentItem, at: number) {
  const controlId = controlIdOf(frameworkId, item.id)
  const question = item.question === undefined ? {} : { prose: item.question }
  return {
    'control-id': controlId,
    description: item.title,
    props: [
      property('item-id', item.id),
      property('category', String(at + 1)),
      property('weight', String(item.weight)),
      property('priority', String(item.priority)),
      property('recommendation', item.recommendation),
      ...workProps(item),
    ],
    parts: [{ id: objectiveIdOf(controlId), name: 'assessment-objective', ...question }],
  }
}

/** Absent fields are not written. */
function workProps(item: AssessmentItem) {
  const { owner, dueOn, links, review } = workOf(item)
  return [
    ...(owner === '' ? [] : [property('owner', owner)]),
    ...(dueOn === '' ? [] : [property('due-on', dueOn)]),
    ...links.map((link) => property('link', link)),
    ...(review === undefined ? [] : [property('review', reviewText(review))]),
  ]
}

function resultOf(assessment: Assessment, categories: readonly AssessmentCategory[]) {
  const items = itemsOf(categories)
  const { id, frameworkId, title, status, result, startedAtMs, completedAtMs } = assessment
  const score =
    result === null
      ? []
      : [
          property('overall-score', String(result.overallScore)),
          property('grade', result.grade),
          // By the facts at completion, so that each export has the same ones.
          ...basisProps(basisOf(assessment, categories, new Map(), completedAtMs)),
        ]
  const observations = items.flatMap((item) => observationsOf(assessment, item))
  const findings = items.filter(({ answer }) => answer !== 'unanswered').map((item) => findingOf(assessment, item))
  return {
    uuid: uuidOf(`${id}/result`),
    title,
    description: `Self-assessment against ${frameworkOf(assessment)}`,
    start: isoSeconds(startedAtMs),
    ...(status === 'completed' ? { end: isoSeconds(completedAtMs) } : {}),
    props: [property('status', status), ...score],
    'reviewed-controls': {
      'control-selections': [
        { 'include-controls': items.map((item) => ({ 'control-id': controlIdOf(frameworkId, item.id) })) },
      ],
    },
    ...(observations.length === 0 ? {} : { observations }),
    ...(findings.length === 0 ? {} : { findings }),
  }
}

/** The note, and what discovery showed. */
function observationsOf({ id, updatedAtMs }: Assessment, item: AssessmentItem) {
  const { note, facts } = item
  const itemId = property('item-id', item.id)
  const noted = {
    uuid: observationId(id, item),
    description: note,
    props: [itemId],
    methods: ['UNKNOWN'],
    collected: isoSeconds(updatedAtMs),
  }
  if (facts === undefined) return note === '' ? [] : [noted]
  const discovered = {
    uuid: uuidOf(`${id}/discovery/${itemKey(item.id)}`),
    description: facts.text,
    props: [itemId, property('discovery-topic', facts.topic), property('discovery-supports', facts.level)],
    methods: ['TEST'],
    collected: isoSeconds(facts.atMs),
  }
  return note === '' ? [discovered] : [noted, discovered]
}

function findingOf({ id, frameworkId }: Assessment, item: AssessmentItem) {
  const { answer, note } = item
  return {
    uuid: uuidOf(`${id}/finding/${itemKey(item.id)}`),
    title: shortened(item.title),
    description: `Answer: ${answer}`,
    props: [property('item-id', item.id), property('answer', String(answer))],
    target: {
      type: 'objective-id',
      'target-id': objectiveIdOf(controlIdOf(frameworkId, item.id)),
      status: statusOf(answer),
    },
    ...(note === '' ? {} : { 'related-observations': [{ 'observation-uuid': observationId(id, item) }] }),
  }
}

/** The objective has the whole title. The largest assessment must fit into a file of our limit. */
function shortened(title: string): string {
  const characters = Array.from(title)
  return characters.length <= TITLE_CHARACTERS_MAX ? title : `${characters.slice(0, TITLE_CHARACTERS_MAX).join('')}...`
}

function statusOf(answer: Answer) {
  const points = pointsOf(answer)
  if (points === undefined) return { state: 'satisfied', reason: 'other', remarks: 'Not applicable' }
  return points === 100 ? { state: 'satisfied', reason: 'pass' } : { state: 'not-satisfied', reason: 'fail' }
}

function observationId(assessmentId: string, item: AssessmentItem): string {
  return uuidOf(`${assessmentId}/observation/${itemKey(item.id)}`)
}
