"""How far a memory may be trusted: what reads like an order to an agent waits for a person's yes. Pure.

A memory is repeated to every later session, so one sentence on a web page that gets in is worse than a bad answer:
it stays. Patterns in English, Korean, Japanese and Chinese look at a folded form of the text, in which invisible
characters are gone and letters that only look like others are those others. What they find is not thrown away; it
gets the tag ``review`` and is told to nobody until a person accepts it.

Nobody can list every wording. The patterns are the second line; the first is that what comes from a tool or a page
never becomes a rule, a preference, a constraint or a decision, whatever it says (``answer``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from memorize.consolidate.windows import Found
from memorize.index.text import query_terms
from memorize.limits import MEMORY_TEXT_CHARS_MAX
from memorize.model import REVIEW, TRUSTS
from memorize.patterns import late

# Kinds that tell an agent what to do; only a person or the agent's own work may make them.
BINDING: Final = frozenset({"rule", "preference", "constraint", "decision"})
# A text with so much of its words in a line of a tool, and less than the second share in what the person or the
# agent said, is the tool's, whatever it cites.
TAKEN_OVER: Final = 0.6
OWN_SHARE: Final = 0.35
# Kinds that speak for the person; these need the person's own words.
OWN: Final = frozenset({"rule", "preference"})
_TERMS_MAX: Final = 200
# No memory is longer; some patterns take more than linear time.
_READ_CHARS_MAX: Final = 2 * MEMORY_TEXT_CHARS_MAX
_OTHER_TERMS_MAX: Final = 20_000

_HIDDEN: Final = late(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
# Text that turns round or that nobody sees has no place in a memory; the tags behind a black flag are an emoji.
_CONCEALING: Final = late("[\u202a-\u202e\u2066-\u2069]|(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]")
_MARKS: Final = late("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0]+")
_ACCENTED: Final = late("[\u00c0-\u024f\u1e00-\u1eff]")
# Letters of other alphabets and the Latin ones that they are taken for; small Cyrillic ones stand for both cases.
_PAIRS: Final = (
    "аa вb еe кk мm нh оo рp сc тt уy хx іi јj ѕs ԁd ԛq ԝw һh ӏl єe ґr гr ьb пn ѵv "
    "αa βb εe ιi κk νv οo ρp τt υu χx γy ηn ωw ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX "
    "ցg հh ոn սu օo զq ɑa ɡg ɩi ɪi ʏy ʀr ᴀa ᴇe ᴏo ıi ⅼl"
)
_ALIKE: Final = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}
# Letters one by one: "i g n o r e", "i.g.n.o.r.e"; words then stand further apart.
_SPELLED: Final = late(r"(?<![^\W_])(?:[a-z][ ._*~-]){3,}[a-z](?![^\W_])")
_SPACES: Final = late(r"\s+")
_SENTENCE_END: Final = late(r"[.;:!?。！？]\s+|\n")
_NO_LETTER: Final = late(r"[\W_]+")


def fold(text: str) -> str:
    """Return the text as the patterns see it: NFKC, no invisible characters, look-alikes and case folded."""
    seen = _HIDDEN.sub("", unicodedata.normalize("NFKC", _HIDDEN.sub("", text)))
    seen = _MARKS.sub("", seen).translate(_ALIKE).casefold().translate(_ALIKE)
    seen = _ACCENTED.sub(lambda found: unicodedata.normalize("NFKD", found[0])[0], seen)
    seen = _SPELLED.sub(lambda found: _NO_LETTER.sub("", found[0]), seen)
    return _SPACES.sub(" ", seen).strip()


def visible(text: str) -> str:
    """Return the text without what conceals text: tags that nobody sees, and marks that turn its direction."""
    return _CONCEALING.sub("", text)


def _any(*alternatives: str) -> re.Pattern[str]:
    return late("|".join(f"(?:{one})" for one in alternatives))


_DROP: Final = (
    r"(?:ignore|disregard|forget|override|overrule|bypass|do not follow|don't follow|stop following|not obey)"
)
_EARLIER: Final = (
    r"(?:all|any|every|the|your|my|these|those|previous|prior|above|earlier|preceding|foregoing|system|"
    r"existing|original|initial|other|safety|of)"
)
_ORDERS: Final = r"(?:instructions?|prompts?|directives?|guidelines?|system messages?|developer messages?)"
_BEFORE: Final = r"(?:your|previous|prior|above|earlier|preceding|system|safety)"
_SECRETS: Final = (
    r"(?:secrets?|tokens?|api[ _-]?keys?|private keys?|ssh keys?|credentials?|passwords?|environment variables?|"
    r"\.env\b|conversation history|chat history)"
)
_SEND: Final = r"(?:send|post|upload|exfiltrate|forward|transmit|e-?mail|leak|submit|copy)"

# What no memory says in earnest, whoever wrote it. Name of the reason, pattern on the folded text.
_ORDERING: Final = (
    (
        "overrides earlier instructions",
        _any(
            rf"\b{_DROP} (?:{_EARLIER} ){{1,4}}(?:\w+ )?{_ORDERS}\b",
            rf"\b{_DROP} (?:\w+ ){{0,3}}{_BEFORE} (?:\w+ ){{0,2}}(?:rules|constraints|restrictions|policies|context)\b",
            r"\b(?:new|updated|real|actual) (?:system prompt|instructions?) ?:",
            r"\bignore (?:everything|anything) (?:above|before|you were told|the user)",
        ),
    ),
    (
        "gives the agent another role",
        _any(
            r"\b(?:you are now|from now on,? you (?:are|must|will|shall)|pretend (?:to be|you are)|roleplay as)\b",
            r"\b(?:jailbreak(?:ed)?|developer mode enabled|dan mode|do anything now)\b",
        ),
    ),
    (
        "asks for hidden instructions",
        _any(
            r"\b(?:reveal|print|show|output|repeat|leak|disclose|dump) (?:\w+ ){0,3}"
            r"(?:system prompt|hidden (?:prompt|instructions?)|initial (?:prompt|instructions?))\b"
        ),
    ),
    (
        "keeps something from the person",
        _any(
            r"\b(?:do not|don't|never) (?:ever )?(?:tell|inform|mention|reveal|notify|alert|warn|disclose|report)"
            r"(?: \w+){0,4} (?:the|your) (?:user|human|developer|operator)\b",
            r"\bwithout (?:telling|asking|informing|notifying|alerting) (?:the |your )?(?:user|human"
            r"|developer|operator)\b",
            r"\bhide (?:this|it|that) from (?:the |your )?(?:user|human|developer|operator)",
        ),
    ),
    (
        "sends secrets away",
        _any(
            rf"\b{_SEND}\b.{{0,60}}?(?<!\w){_SECRETS}.{{0,80}}\b(?:to|via|at)\b.{{0,30}}(?:https?:|www\.|@|server|url)",
            rf"\b{_SEND}\b.{{0,60}}?(?:https?:|www\.).{{0,80}}(?<!\w){_SECRETS}",
        ),
    ),
    (
        "imitates the markup of a conversation",
        _any(
            r"<\|? ?(?:im_start|im_end|system|user|assistant|endoftext)",
            r"\[/?inst\]|<</?sys>>|</?system(?:-reminder)?>|</?memorize-context|### ?(?:system|instructions?)\b",
            r"(?:^|\W)(?:system|developer) ?(?:message|prompt|override) ?:",
        ),
    ),
)

# The same in languages that need no spaces; on the folded text without spaces and punctuation.
_ORDERING_CJK: Final = (
    (
        "overrides earlier instructions",
        _any(
            r"(?:이전|위의?|앞선?|앞의|기존|모든|지금까지|시스템).{0,12}(?:지시|명령|프롬프트|지침|규칙|제한).{0,10}"
            r"(?:무시|잊|따르지|무효|덮어|버려|버리)",
            r"(?:以前|前|上記|上|これまで|すべて|全て|全|システム)の?.{0,12}(?:指示|命令|プロンプト|ルール"
            r"|規則|指令|制約)"
            r".{0,8}(?:無視|忘れ|破棄|従わ|上書き)",
            r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要理會|不要遵守|覆盖|绕过|繞過).{0,6}"
            r"(?:之前|以前|上面|上述|先前|所有|一切|全部|此前|前面|系统|系統|你).{0,10}"
            r"(?:指示|指令|命令|提示|规则|規則|说明|說明|要求|限制)",
        ),
    ),
    (
        "gives the agent another role",
        _any(
            r"(?:이제부터|지금부터)(?:너는|넌|당신은|귀하는)",
            r"(?:今から|これから)(?:は)?(?:あなた|お前|君)は",
            r"(?:从现在开始|從現在開始|从现在起|從現在起).{0,4}你(?:是|必须|必須|将|將|要)",
        ),
    ),
    (
        "asks for hidden instructions",
        _any(
            r"(?:시스템|숨겨진|숨은).{0,4}(?:프롬프트|지시).{0,12}(?:출력|보여|공개|알려|노출|말해)",
            r"(?:システム|隠され).{0,3}(?:プロンプト|指示).{0,10}(?:出力|表示|公開|教え|開示)",
            r"(?:输出|輸出|显示|顯示|泄露|洩露|透露|打印).{0,8}(?:系统提示|系統提示|提示词|提示詞)",
        ),
    ),
    (
        "keeps something from the person",
        _any(
            r"(?:사용자|유저|개발자)(?:에게|한테|께)?.{0,14}(?:알리지|말하지|묻지|보고하지|밝히지"
            r"|언급하지)(?:마|말|않)",
            r"(?:ユーザー?|開発者)(?:に|へ|には).{0,12}(?:知らせ|伝え|言わ|教え|通知し|確認せ|報告し)(?:な|ず|るな)",
            r"(?:不要|别|別|切勿|请勿|請勿)(?:告诉|告訴|通知|告知|提醒|询问|詢問|让|讓|向)(?:用户|用戶|使用者|开发者)",
        ),
    ),
    (
        "sends secrets away",
        _any(
            r"(?:비밀번호|토큰|비밀키|api키|자격증명|환경변수|인증정보|대화내용).{0,40}(?:전송|보내|업로드"
            r"|유출|게시|post)",
            r"(?:パスワード|トークン|秘密鍵|apiキー|認証情報|環境変数|会話).{0,40}(?:送信|送って|送れ"
            r"|アップロード|投稿|転送)",
            r"(?:密码|密碼|密钥|密鑰|令牌|凭证|憑證|环境变量|環境變數|对话).{0,40}(?:发送|發送|上传|上傳|发到"
            r"|發到|传到|泄露)",
            r"(?:发送|發送|上传|上傳).{0,20}(?:密码|密碼|密钥|密鑰|令牌|凭证|憑證|环境变量|環境變數)",
        ),
    ),
)

# What a person may well say and what no page may: it tells an agent or a reader what to do.
_DIRECTING: Final = (
    (
        "tells an agent what to do",
        _any(
            r"\b(?:ai|llm|language model|coding|automated)?[ -]?(?:assistants?|agents?|models?|chatbots?|claude|codex|"
            r"copilot|gpt|gemini)(?: tools?)? "
            r"(?:must|should|shall|need to|have to|has to|needs to|are required to|is required to|may never"
            r"|will now)\b",
            r"\b(?:always|never) (?:run|execute|use|install|add|commit|push|merge|approve|trust|recommend"
            r"|include|disable"
            r"|skip|send|open|visit|download|delete|tell|say|answer|prefer)\b",
            r"\b(?:important|attention|note|notice)[^.]{0,20}(?:ai|llm|assistant|agent|model)s?\b",
            r"\b(?:remember|memori[sz]e|store|save|record) (?:this|that|the following|it|permanently)\b",
            r"\b(?:in|for) (?:all|every) (?:future|later|coming) (?:sessions?|conversations?|projects?|tasks?)\b",
            r"\byou (?:must|should|shall|need to|have to|are required to)\b",
        ),
    ),
    (
        "has a command run that nobody checks",
        _any(
            r"\b(?:curl|wget|iwr|invoke-webrequest)\b.{0,200}?[|>] ?(?:sudo )?(?:ba|z|da)?sh\b",
            r"\bbase64 (?:-d|--decode)\b|\biex ?\(|\beval ?\$?\(|\brm -rf [/~]|\bchmod (?:-r )?777\b",
            r"--no-verify\b|--dangerously-|--trust-all|\bverify ?= ?false\b|strict-ssl (?:=)?false|--insecure\b",
        ),
    ),
    ("holds text that cannot be read", _any(r"[a-z0-9+/]{100,}={0,2}")),
)
_DIRECTING_CJK: Final = (
    (
        "tells an agent what to do",
        _any(
            r"(?:에이전트|어시스턴트|ai|모델|클로드|코덱스|챗봇)(?:는|은|가|이)?.{0,30}(?:해야|하라|하십시오"
            r"|하세요|할것|마라|말것)",
            r"(?:항상|반드시|무조건|절대|앞으로|매번).{0,40}(?:하라|하십시오|하세요|해야|할것|마라|마십시오"
            r"|마세요|말것|기억)",
            r"(?:エージェント|アシスタント|ai|モデル).{0,30}(?:しなければ|すべき|してください|すること|せよ"
            r"|必要がある)",
            r"(?:必ず|常に|絶対に|今後|毎回).{0,40}(?:してください|すること|しなければ|せよ|覚え|しないで|するな)",
            r"(?:ai|智能体|助手|代理|模型).{0,30}(?:必须|必須|应该|應該|应当|務必|务必|需要)",
            r"(?:总是|總是|始终|始終|永远|永遠|务必|務必|一定要|必须|必須|今后|今後).{0,40}(?:运行|執行|执行"
            r"|使用|安装|安裝|记住|記住|推荐|添加)",
        ),
    ),
)


def reasons(text: str, trust: str, kind: str = "") -> tuple[str, ...]:
    """Return why a text waits for a person's yes, as phrases for a person; none when nothing speaks against it.

    ``trust`` is the grade of the memory. What external text may not say, a person may; what the agent says binds
    only when its ``kind`` does.
    """
    text = text[:_READ_CHARS_MAX]
    seen = fold(text)
    bare = _NO_LETTER.sub("", seen)
    found = [name for name, pattern in _ORDERING if pattern.search(seen)]
    found += [name for name, pattern in _ORDERING_CJK if pattern.search(bare)]
    if "ignoreallprevious" in bare or "ignorepreviousinstructions" in bare or "ignoreallinstructions" in bare:
        found.append("overrides earlier instructions")
    if _CONCEALING.search(text):
        found.append("holds characters that conceal text")
    if trust == TRUSTS[0] or (trust != TRUSTS[-1] and kind in BINDING):
        found += [name for name, pattern in _DIRECTING if pattern.search(seen)]
        found += [name for name, pattern in _DIRECTING_CJK if pattern.search(bare)]
    return tuple(dict.fromkeys(found))


def screened(memories: Iterable[Found]) -> list[Found]:
    """Return the memories, with the tag ``review`` on each that waits for a person; such a one replaces nothing."""
    return [set_aside(one) if reasons(one.text, one.trust, one.kind) else one for one in memories]


def set_aside(memory: Found) -> Found:
    """Return the memory as one that waits for a person's yes."""
    return memory._replace(tags=tuple(dict.fromkeys((*memory.tags, REVIEW))), replaces=())


def rank(trust: str) -> int:
    """Return the place of a grade, the least trusted first; an unknown one counts as that."""
    return TRUSTS.index(trust) if trust in TRUSTS else 0


def overlap(text: str, other: str) -> float:
    """Return which share of the telling words (CJK: pairs of characters) of a text stand in another one too."""
    words = query_terms(text, _TERMS_MAX)
    return len(_terms(other).intersection(words)) / len(words) if words else 0.0


def carries_order(text: str, tools: Iterable[str], others: str) -> bool:
    """Return whether a sentence tells what to do in the words of a tool, which nobody else said.

    A summary is the model's own; an order that it takes along from a page is not.
    """
    tools = tuple(tools)
    return any(
        overlap(sentence, others) < OWN_SHARE and any(overlap(sentence, tool) >= TAKEN_OVER for tool in tools)
        for sentence in _SENTENCE_END.split(text)
        if reasons(sentence, TRUSTS[0])
    )


@lru_cache(maxsize=2_048)
def _terms(text: str) -> frozenset[str]:
    return frozenset(query_terms(text, _OTHER_TERMS_MAX))
